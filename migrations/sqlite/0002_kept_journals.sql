-- Up to where the pieces of a journal were joined.
alter table sessions add column compacted integer not null default 0;
