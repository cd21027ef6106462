-- Codes that a member prints. One makes one new passkey. Only the hash of a code is stored. A used code stays until the
-- member makes new ones, because it counts for the limit per day.
create table recovery_codes (
  hash bytea primary key check (octet_length(hash) = 32),
  member_id text collate "C" not null references members,
  created_at timestamptz not null,
  used_at timestamptz
);
create index recovery_codes_by_member on recovery_codes (member_id);

-- Until then a passkey signs in but confirms nothing: it was made with a recovery code. Null for every other passkey.
alter table passkeys add column waits_until timestamptz;
create index passkeys_waiting on passkeys (waits_until) where waits_until is not null;

alter table challenges drop constraint challenges_purpose_check;
alter table challenges add constraint challenges_purpose_check
  check (purpose in ('sign_in', 'sign_up', 'enrol', 'add_passkey', 'confirm', 'oidc', 'recover'));
