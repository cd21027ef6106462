-- Whether a store may create checkouts. Stores that an operator made may, unless they are suspended. Of those that
-- strangers sign up, a live one waits: for an operator (waiting), or until it has proven a wallet (unproven).
alter table stores
  add column admission text not null default 'approved' check (admission in ('waiting', 'unproven', 'approved')),
  -- Somebody signed up for it: its checkouts and fees have limits until it has proven a wallet.
  add column signed_up boolean not null default false,
  -- When it first proved that a wallet is its own.
  add column proven_at timestamptz,
  add column suspended_at timestamptz,
  add column suspended_reason text,
  add check ((suspended_at is null) = (suspended_reason is null));
update stores s set proven_at = (select min(w.proven_at) from wallets w where w.store_id = s.id)
  where exists (select 1 from wallets w where w.store_id = s.id and w.proven_at is not null);
create index stores_waiting on stores (id) where admission <> 'approved' or suspended_at is not null;

-- How many signed up today from one block of addresses; the block '' counts all of them.
create table sign_ups (
  day date not null,
  block text collate "C" not null,
  count integer not null check (count > 0),
  primary key (day, block)
);

alter table challenges drop constraint challenges_purpose_check;
alter table challenges add constraint challenges_purpose_check
  check (purpose in ('sign_in', 'sign_up', 'enrol', 'add_passkey', 'confirm', 'oidc'));

-- How each provider of nodes did, hour by hour, as every `work` saw it.
create table node_hours (
  network text collate "C" not null,
  provider text collate "C" not null,
  hour timestamptz not null,
  answered bigint not null,
  failed bigint not null,
  primary key (network, provider, hour)
);
