-- What lists show besides: questions that wait for an answer, prompts that wait for their turn.
alter table sessions add column waiting integer not null default 0;
alter table sessions add column queued integer not null default 0;

-- What has to go on after a restart.
create index sessions_unfinished on sessions (updated_at) where running = 1 or queued > 0;
