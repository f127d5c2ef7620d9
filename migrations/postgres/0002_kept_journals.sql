-- Up to where the pieces of a journal were joined.
alter table sessions add column compacted bigint not null default 0;
