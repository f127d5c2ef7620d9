-- What a user has uploaded is added up at every upload.
create index attachments_by_owner on attachments (owner_id);
