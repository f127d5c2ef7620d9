-- The ground floor. Times are milliseconds since 1970 in UTC; ids carry their prefix.

create table users (
    id            text not null primary key,
    username      text not null constraint users_username_taken unique,
    role          text not null check (role in ('admin', 'member')),
    password_hash text,                                  -- null until the invite is accepted
    disabled      boolean not null default false,
    generation    bigint not null default 1,              -- tokens of an older one are worthless
    created_at    bigint not null,
    updated_at    bigint not null
);

-- One row per browser or program that proved who it is. Ended ones stay until their tokens are gone.
create table logins (
    id                 text not null primary key,
    user_id            text not null references users (id) on delete cascade,
    kind               text not null check (kind in ('browser', 'token')),
    session_id         text,                             -- bound to this one session
    refresh_hash       bytea,                           -- SHA-256; null for tokens that are not refreshed
    refresh_expires_at bigint,
    token_expires_at   bigint not null,                   -- the last access token issued for it
    address            text,
    user_agent         text,
    created_at         bigint not null,
    last_used_at       bigint not null,
    ended_at           bigint
);
create index logins_by_user on logins (user_id);

-- Refresh tokens that were exchanged already: seeing one again means that it was stolen.
create table spent_refresh_tokens (
    hash     bytea not null primary key,
    login_id text not null references logins (id) on delete cascade,
    spent_at bigint not null
);
create index spent_refresh_tokens_by_login on spent_refresh_tokens (login_id);

create table signing_keys (
    id          text not null primary key,
    private_key bytea not null,                         -- PKCS #8
    public_key  bytea not null,
    created_at  bigint not null,
    retired_at  bigint,                                   -- signs no more
    expires_at  bigint                                    -- verifies no more
);

-- Things that work once: setup and invite links, tickets for a socket. Only hashes are stored.
create table one_time_links (
    hash       bytea not null primary key,
    kind       text not null check (kind in ('setup', 'invite', 'ticket')),
    user_id    text references users (id) on delete cascade,
    login_id   text references logins (id) on delete cascade,
    created_at bigint not null,
    expires_at bigint not null
);
create index one_time_links_by_expiry on one_time_links (expires_at);

create table audit_log (
    id         bigint generated always as identity primary key,
    at         bigint not null,
    actor_id   text,
    actor_name text not null,
    address    text,
    action     text not null,
    target     text not null
);
create index audit_log_by_time on audit_log (at);

-- What running gateways must learn within a second. The one row of auth_revision is locked by every
-- transaction that adds a change, so revisions become visible in their order.
create table auth_revision (
    only_row bigint not null primary key check (only_row = 1),
    revision bigint not null
);
insert into auth_revision (only_row, revision) values (1, 0);
create table auth_changes (
    revision   bigint not null primary key,
    kind       text not null check (kind in ('login', 'user', 'keys')),
    subject    text not null,
    generation bigint,
    until      bigint not null                            -- nothing that it is about is valid after this
);

-- Sessions, their journals and what belongs to them.
create table sessions (
    id          text not null primary key,
    owner_id    text not null references users (id) on delete cascade,
    agent       text not null,
    title       text,
    workspace   text,
    epoch       text not null,
    head        bigint not null default 0,                -- offset of the last event
    lease_node  text,                                    -- the node whose router writes the journal
    lease_until bigint,
    term        bigint not null default 0,                -- fencing: grows with every new owner
    messages    bigint not null default 0,                -- how many utterances
    last_prompt text,                                    -- the newest one of a human, shortened
    running     boolean not null default false,
    created_at  bigint not null,
    updated_at  bigint not null,
    archived_at bigint,
    ended_at    bigint
);
create index sessions_by_owner on sessions (owner_id, updated_at);

create table journal_events (
    session_id text not null references sessions (id) on delete cascade,
    "offset"   bigint not null,
    at         bigint not null,
    body       bytea not null,
    primary key (session_id, "offset")
);

create table session_snapshots (
    session_id text not null primary key references sessions (id) on delete cascade,
    "offset"   bigint not null,
    body       bytea not null
);

create table commands (
    session_id      text not null references sessions (id) on delete cascade,
    idempotency_key text not null,
    digest          bytea not null,                     -- of the payload: another one under the same key is refused
    outcome         bytea not null,
    created_at      bigint not null,
    primary key (session_id, idempotency_key)
);
create index commands_by_time on commands (created_at);

create table attachments (
    id           text not null primary key,
    session_id   text not null references sessions (id) on delete cascade,
    owner_id     text not null references users (id) on delete cascade,
    content_hash bytea not null,
    name         text not null,                          -- for display only
    media_type   text not null,
    size_bytes   bigint not null,
    created_at   bigint not null
);
create index attachments_by_session on attachments (session_id);
create index attachments_by_content on attachments (content_hash);
