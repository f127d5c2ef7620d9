-- A branch has the files of the session that it comes from, under the same ids: an id is unique
-- within its session.
alter table attachments drop constraint attachments_pkey;
alter table attachments add primary key (session_id, id);
drop index attachments_by_session;

-- Where a branch still has to take texts from that it shall be found by, and up to which offset: they
-- take long to be indexed, and follow a part at a time.
alter table sessions add column texts_from text;
alter table sessions add column texts_upto bigint;
