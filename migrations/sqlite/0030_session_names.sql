-- A session is called by its title, else by its first prompt. A title that a user gave stays, whatever
-- title the agent reports later.
alter table sessions add column first_prompt text;       -- shortened
alter table sessions add column renamed integer not null default 0;
alter table sessions add column branched_from text;      -- the session that it began as a copy of
update sessions set first_prompt = last_prompt;

-- Who issued a link, by name.
alter table one_time_links add column issuer text;

-- How far a user has read a session.
create table session_reads (
    session_id text not null references sessions (id) on delete cascade,
    user_id    text not null references users (id) on delete cascade,
    "offset"   integer not null,
    primary key (session_id, user_id)
) strict, without rowid;
create index session_reads_by_user on session_reads (user_id);

-- The newest texts of a user, to be searched for parts of words.
create index session_texts_by_owner on session_texts (owner, id);
