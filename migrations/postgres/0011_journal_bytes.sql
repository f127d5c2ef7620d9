-- How large the journal of a session is, for the quota of its owner. Kept up to date with the session's
-- summary, so that the row is left alone while an answer streams.
alter table sessions add column journal_bytes bigint not null default 0;
update sessions set journal_bytes = (
    select coalesce(sum(length(body)), 0) from journal_events where session_id = sessions.id
);
