-- Who else may come into a session, as its owner decided.
create table session_grants (
    session_id text not null references sessions (id) on delete cascade,
    user_id    text not null references users (id) on delete cascade,
    role       text not null check (role in ('viewer', 'editor')),
    granted_by text not null,
    created_at bigint not null,
    primary key (session_id, user_id)
);
create index session_grants_by_user on session_grants (user_id);

-- Whose commands a session takes: everybody's who may, or those of the one who took control.
alter table sessions add column control text not null default 'open' check (control in ('open', 'exclusive'));
