-- Accounts at the company's identity provider that sign a member in.
create table identities (
  issuer text collate "C" not null,
  subject text collate "C" not null,
  member_id text collate "C" not null references members,
  created_at timestamptz not null,
  primary key (issuer, subject)
);
create index identities_by_member on identities (member_id);

-- Null if such an account opened the session, and no passkey did.
alter table sessions alter column passkey_id drop not null;
alter table challenges drop constraint challenges_purpose_check;
alter table challenges add constraint challenges_purpose_check
  check (purpose in ('sign_in', 'enrol', 'add_passkey', 'confirm', 'oidc'));
