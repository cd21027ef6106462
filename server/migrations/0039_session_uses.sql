-- Where a session was used from, newest first: {browser, address, at}. It is deleted with the session. moves counts how
-- often its member was told that it is used elsewhere.
alter table sessions add column uses jsonb not null default '[]' check (jsonb_typeof(uses) = 'array');
alter table sessions add column moves smallint not null default 0 check (moves >= 0);
-- Hashes of the places that a member has used sessions from, oldest first.
alter table members add column places bytea[] not null default '{}';
