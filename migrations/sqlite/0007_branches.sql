-- A branch has the files of the session that it comes from, under the same ids: an id is unique
-- within its session.
create table attachments_by_id (
    id           text not null,
    session_id   text not null references sessions (id) on delete cascade,
    owner_id     text not null references users (id) on delete cascade,
    content_hash blob not null,
    name         text not null,                          -- for display only
    media_type   text not null,
    size_bytes   integer not null,
    created_at   integer not null,
    primary key (session_id, id)
) strict;
insert into attachments_by_id
select id, session_id, owner_id, content_hash, name, media_type, size_bytes, created_at
from attachments;
drop table attachments;
alter table attachments_by_id rename to attachments;
create index attachments_by_content on attachments (content_hash);
create index attachments_by_owner on attachments (owner_id);

-- Where a branch still has to take texts from that it shall be found by, and up to which offset: they
-- take long to be indexed, and follow a part at a time.
alter table sessions add column texts_from text;
alter table sessions add column texts_upto integer;
