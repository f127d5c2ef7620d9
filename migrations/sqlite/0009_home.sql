-- Where this database is at home. One that finds itself elsewhere is a copy that was put in place: its
-- journals get a new epoch then, because their offsets may come to mean something else than clients saw.
create table store_home (
    only_row  integer not null primary key check (only_row = 1),
    home      text,                                      -- null until it was opened
    scrub_due integer not null default 0                 -- something was removed that free pages still hold
) strict;
insert into store_home (only_row) values (1);

-- Empty but for the moment in which free pages are written over.
create table scrap (
    id   integer not null primary key,
    body blob not null
) strict;
