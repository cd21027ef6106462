-- What the audit has compared with the chains. Only its own role writes here; it writes nowhere else.

-- One row per wallet, token and day that was compared: what the chain says, and what the books said then.
create table audit_days (
  network text collate "C" not null,
  wallet text collate "C" not null,
  asset text collate "C" not null,
  day date not null,
  received numeric(78, 0) not null,
  sent numeric(78, 0) not null,
  -- What the wallet held at the end of the day; null if no node could tell.
  balance numeric(78, 0),
  credits integer not null,
  credited numeric(78, 0) not null,
  checked_at timestamptz not null,
  primary key (network, wallet, asset, day)
);

create table audit_findings (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('missing', 'dust', 'sibling', 'unfounded', 'unpaid', 'balance')),
  -- Empty where a finding is about a checkout alone.
  network text collate "C" not null,
  wallet text collate "C" not null,
  asset text collate "C" not null,
  day date not null,
  -- Empty for sums.
  transaction_hash text collate "C" not null,
  -- Among equal transfers of the transaction.
  position integer not null,
  amount numeric(78, 0) not null,
  checkout_id text collate "C",
  -- Null if no store owns it.
  store_id text collate "C" references stores (id),
  found_at timestamptz not null,
  -- Since a later comparison no longer finds it.
  resolved_at timestamptz
);
create unique index audit_findings_once on audit_findings
  (network, wallet, asset, day, kind, transaction_hash, position, checkout_id, store_id) nulls not distinct;
create index audit_findings_open on audit_findings (store_id, day) where resolved_at is null;

-- How the audit of each network last ended.
create table audit_runs (
  network text collate "C" primary key,
  ran_at timestamptz not null,
  calls bigint not null,
  -- Why days are left out; null if none is.
  trouble text,
  trouble_since timestamptz
);

-- Credits of a day, whatever the network: few bytes, because blocks come in the order of their times.
create index credits_by_time on credits using brin (block_time) with (pages_per_range = 32, autosummarize = on);
