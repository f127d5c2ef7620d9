-- What a session is found by: its title (offset 0), and each prompt and answer at its offset. They
-- leave with their events and with their session.
create table session_texts (
    id         bigint generated always as identity primary key,
    session_id text not null references sessions (id) on delete cascade,
    owner      text not null,                              -- the owner's id as one word
    "offset"   bigint not null,
    text       text not null,
    -- The owner is a word of the index, one that nobody can type: a search passes by what others
    -- have said. Without punctuation: a path or an address is the words in it, not one long word.
    words      tsvector not null generated always as (
        array_to_tsvector(array['=' || owner]) || to_tsvector('simple', translate(
            text,
            '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~',
            '                                '
        ))
    ) stored
);
create index session_texts_by_session on session_texts (session_id, "offset");
create index session_texts_by_word on session_texts using gin (words);

-- Titles are changed in many ways; whichever it was, the index follows.
create function index_session_title() returns trigger language plpgsql as $$
begin
    delete from session_texts where session_id = new.id and "offset" = 0;
    insert into session_texts (session_id, owner, "offset", text)
    select new.id, replace(new.owner_id, '_', ''), 0, left(new.title, 1000)
    where new.title is not null;
    return null;
end
$$;
create trigger sessions_title_given after insert on sessions
    for each row when (new.title is not null) execute function index_session_title();
create trigger sessions_title_changed after update of title on sessions
    for each row when (new.title is distinct from old.title) execute function index_session_title();

insert into session_texts (session_id, owner, "offset", text)
select id, replace(owner_id, '_', ''), 0, left(title, 1000) from sessions
where title is not null and ended_at is null;
