-- Where this database is at home. One that finds itself elsewhere is a copy that was put in place: its
-- journals get a new epoch then, because their offsets may come to mean something else than clients saw.
create table store_home (
    only_row  bigint not null primary key check (only_row = 1),
    home      text,                                      -- null until it was opened
    scrub_due bigint not null default 0                  -- only SQLite has something to do then
);
insert into store_home (only_row) values (1);
