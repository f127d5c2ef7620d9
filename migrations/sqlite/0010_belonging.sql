-- What data directories know this database by: uploaded files that it does not know are removed only from
-- one that belongs to it. Another name with every new epoch of all journals.
alter table store_home add column store_id text;         -- null until somebody asks

-- Contents that a file had and no longer has: only these are removed before they are old. A row is of no
-- use after that time, because what it names is old then.
create table released_contents (
    content_hash blob not null primary key,
    until        integer not null
) strict;

create trigger attachments_release_contents after delete on attachments begin
    insert into released_contents (content_hash, until)
    values (old.content_hash, unixepoch() * 1000 + 7200000)
    on conflict (content_hash) do update set until = excluded.until;
end;
