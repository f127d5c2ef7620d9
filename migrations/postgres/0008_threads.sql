-- The agent's own name for the conversation of a session, with which it can go on after a restart. A
-- branch begins without one.
alter table sessions add column thread text;
