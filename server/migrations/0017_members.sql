-- People who act for stores. They sign in with passkeys only.
create table members (
  id text collate "C" primary key,
  name text not null,
  email text,
  -- Runs the deployment: sees every store's name and health, and no store's payments.
  is_operator boolean not null default false,
  created_at timestamptz not null
);

create table memberships (
  store_id text collate "C" not null references stores,
  member_id text collate "C" not null references members,
  role text not null check (role in ('owner', 'manager', 'developer', 'viewer')),
  created_at timestamptz not null,
  primary key (store_id, member_id)
);
create index memberships_by_member on memberships (member_id);

-- A link with which one person enrols. Only the hash of its token is stored.
create table invitations (
  id text collate "C" primary key,
  token_hash bytea not null unique check (octet_length(token_hash) = 32),
  store_id text collate "C" not null references stores,
  -- The member that it makes, or whose passkeys it replaces.
  member_id text collate "C" not null,
  is_recovery boolean not null,
  name text not null,
  email text,
  role text not null check (role in ('owner', 'manager', 'developer', 'viewer')),
  -- Null: an operator, at the command line.
  invited_by text collate "C" references members,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create index invitations_by_store on invitations (store_id, id) where used_at is null;
create index invitations_by_member on invitations (member_id);
create index invitations_by_inviter on invitations (invited_by);

create table passkeys (
  id text collate "C" primary key,
  -- The authenticator's own id for it, in base64url.
  credential_id text collate "C" not null unique,
  member_id text collate "C" not null references members,
  public_key bytea not null,
  -- How often the authenticator says that it was used; 0 for ever if it does not count.
  counter bigint not null check (counter >= 0),
  transports text[] not null default '{}',
  name text not null,
  created_at timestamptz not null,
  last_used_at timestamptz
);
create index passkeys_by_member on passkeys (member_id, id);

create table sessions (
  id text collate "C" primary key,
  token_hash bytea not null unique check (octet_length(token_hash) = 32),
  member_id text collate "C" not null references members,
  -- The passkey that opened it.
  passkey_id text collate "C" not null,
  browser text not null,
  address text not null,
  created_at timestamptz not null,
  seen_at timestamptz not null,
  expires_at timestamptz not null
);
create index sessions_by_member on sessions (member_id, id);
create index sessions_by_end on sessions (expires_at);

-- What a passkey is asked to sign. Using one deletes it.
create table challenges (
  hash bytea primary key check (octet_length(hash) = 32),
  purpose text not null check (purpose in ('sign_in', 'enrol', 'add_passkey', 'confirm')),
  -- The browser that it was given to: SHA-256 of the token in its cookie.
  browser_hash bytea not null check (octet_length(browser_hash) = 32),
  -- What exactly it is for: SHA-256 of the invitation, or of the action and its values.
  subject_hash bytea not null check (octet_length(subject_hash) = 32),
  expires_at timestamptz not null
);
create index challenges_by_end on challenges (expires_at);
