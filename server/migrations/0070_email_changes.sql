-- The address that a member asked to be mailed at, until they have opened the link that was sent there. A row stays
-- after that, or after a newer link replaced it, because it counts the links of a day.
create table email_changes (
  member_id text collate "C" primary key references members,
  token_hash bytea unique check (octet_length(token_hash) = 32),
  email text,
  expires_at timestamptz not null,
  day date not null,
  links integer not null check (links > 0),
  check ((token_hash is null) = (email is null))
);
create index email_changes_over on email_changes (expires_at);

-- When members confirmed their address themselves. Null: somebody who invited them entered it, or there is none.
alter table members add column email_confirmed_at timestamptz;
