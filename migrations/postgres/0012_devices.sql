-- The device (browser) that a login was made on, as its cookie names it: an answer that got lost may be
-- asked for again from the same device only.
alter table logins add column device text;
