-- Up to where the pieces of a journal were joined.
alter table sessions add column compacted integer not null default 0;

-- Events that were committed and are not in their journals yet: one row per commit, so that a commit
-- for many sessions touches few pages. Carried over into journal_events many commits at a time.
create table journal_log (
    id   integer not null primary key,
    body blob not null
) strict;
