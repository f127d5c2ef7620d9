-- A branch has the files of the session that it comes from, under the same ids: an id is unique
-- within its session.
alter table attachments drop constraint attachments_pkey;
alter table attachments add primary key (session_id, id);
drop index attachments_by_session;
