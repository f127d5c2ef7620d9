-- What a session is found by: its title (offset 0), and each prompt and answer at its offset. They
-- leave with their events and with their session.
create table session_texts (
    id         integer not null primary key,
    session_id text not null references sessions (id) on delete cascade,
    owner      text not null,                              -- the owner's id as one word
    "offset"   integer not null,
    text       text not null
) strict;
create index session_texts_by_session on session_texts (session_id, "offset");

-- The owner is a word of the index: a search passes by what others have said. Short beginnings are
-- indexed by themselves, as each is that of very many words.
create virtual table session_words using fts5 (
    owner, text,
    content = 'session_texts', content_rowid = 'id',
    prefix = '1 2 3',
    tokenize = "unicode61 remove_diacritics 0"
);
create trigger session_texts_added after insert on session_texts begin
    insert into session_words (rowid, owner, text) values (new.id, new.owner, new.text);
end;
create trigger session_texts_removed after delete on session_texts begin
    insert into session_words (session_words, rowid, owner, text)
    values ('delete', old.id, old.owner, old.text);
end;

-- Titles are changed in many ways; whichever it was, the index follows.
create trigger sessions_title_given after insert on sessions when new.title is not null begin
    insert into session_texts (session_id, owner, "offset", text)
    values (new.id, replace(new.owner_id, '_', ''), 0, substr(new.title, 1, 1000));
end;
create trigger sessions_title_changed after update of title on sessions
when new.title is not old.title begin
    delete from session_texts where session_id = new.id and "offset" = 0;
    insert into session_texts (session_id, owner, "offset", text)
    select new.id, replace(new.owner_id, '_', ''), 0, substr(new.title, 1, 1000)
    where new.title is not null;
end;

insert into session_texts (session_id, owner, "offset", text)
select id, replace(owner_id, '_', ''), 0, substr(title, 1, 1000) from sessions
where title is not null and ended_at is null;
