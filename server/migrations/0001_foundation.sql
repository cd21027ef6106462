-- Every comparison with the present goes through clock(), so that a test can move it without moving the machine.
create function clock() returns timestamptz language sql stable as $$
  select now() + coalesce(nullif(current_setting('farthing.clock_offset', true), ''), '0')::interval
$$;

-- Who sells.

create table stores (
  id text collate "C" primary key,
  mode text not null check (mode in ('live', 'test')),
  name text not null,
  logo_url text,
  accent_color text check (accent_color ~ '^#[0-9a-f]{6}$'),
  finality_policy jsonb not null,
  -- Rises with every change a new checkout depends on (wallets, policy, keys). A create names the revision it was
  -- computed from and is refused if the store has moved on, so processes may remember stores without being wrong.
  revision integer not null default 1,
  created_at timestamptz not null
);

create table api_keys (
  id text collate "C" primary key,
  store_id text collate "C" not null references stores,
  secret_hash bytea not null check (octet_length(secret_hash) = 32),
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz
);
create index api_keys_by_store on api_keys (store_id, id);

create table wallets (
  id text collate "C" primary key,
  store_id text collate "C" not null references stores,
  family text not null check (family in ('EVM', 'SOLANA')),
  address text collate "C" not null,
  custodial_type text not null check (custodial_type in ('CUSTODIAL', 'NON_CUSTODIAL')),
  -- The active wallet with the highest number is the current one of its family: registering again raises it.
  registration bigint generated always as identity,
  created_at timestamptz not null,
  retired_at timestamptz
);
create unique index wallets_one_active_per_address on wallets (store_id, family, address) where retired_at is null;
create index wallets_by_store on wallets (store_id, id);

-- What is owed.

-- No foreign key to stores on the tables that every create writes: the creating statement joins the store, stores are
-- never deleted, and the check would lock one store row in every create of that store.
create table checkouts (
  id text collate "C" primary key,
  store_id text collate "C" not null,
  order_id text collate "C" not null check (octet_length(order_id) between 1 and 255),
  price_amount text not null,
  price_currency text not null check (price_currency ~ '^[A-Z]{3}$'),
  success_redirect_url text,
  -- The ways to pay as they were offered: [{network, asset, amount, payTo}]. Fixed at creation.
  options json not null,
  -- The conversion that made the amounts: {source, perBase, usdPerBase, asOf}; null where the price needed none.
  rate json,
  finality text not null check (finality in ('included', 'safe', 'finalized')),
  status text not null check (status in ('OPEN', 'PROCESSING', 'COMPLETED', 'EXPIRED', 'CANCELED')),
  -- Counts the changes of this checkout; every change leaves one event with its number.
  version integer not null check (version >= 1),
  created_at timestamptz not null,
  expires_at timestamptz not null check (expires_at > created_at)
);
create index checkouts_by_store on checkouts (store_id, id);
create index checkouts_by_order on checkouts (store_id, order_id, id);
create index checkouts_by_status on checkouts (store_id, status, id);
create index checkouts_to_expire on checkouts (expires_at) where status = 'OPEN';

-- The first successful answer to a request that named an Idempotency-Key, byte for byte.
create table idempotency_keys (
  store_id text collate "C" not null,
  route text collate "C" not null,
  key text collate "C" not null check (octet_length(key) between 1 and 255),
  body_hash bytea not null check (octet_length(body_hash) = 32),
  resource_id text collate "C" not null,
  answer json not null,
  created_at timestamptz not null,
  primary key (store_id, route, key)
);
create index idempotency_keys_by_age on idempotency_keys using brin (created_at);

-- What happened.

create table event_log (
  only_row boolean primary key default true check (only_row),
  -- Rises when the database was put back to an earlier point: cursors from before are then refused.
  epoch integer not null default 1
);
insert into event_log default values;

create table events (
  id text collate "C" primary key,
  store_id text collate "C" not null,
  -- Taken under the checkout's row lock, so it never contradicts the order of a checkout's versions.
  position bigint generated always as identity,
  -- Null until assigned; an event without one is invisible to the store.
  sequence bigint,
  type text not null,
  checkout_id text collate "C",
  checkout_version integer,
  data json not null,
  created_at timestamptz not null,
  check ((checkout_id is null) = (checkout_version is null))
);
create unique index events_by_sequence on events (store_id, sequence) where sequence is not null;
-- Events that are not about a version of their checkout, as those about payments, are told apart by their id: so the
-- index also finds all events of a checkout.
create unique index events_one_per_version on events
  (checkout_id, checkout_version, (case when type like 'checkout.%' then '' else id end)) where checkout_id is not null;
create index events_unsequenced on events (store_id, position) where sequence is null;

create table event_counters (
  store_id text collate "C" primary key references stores,
  last_sequence bigint not null default 0
);

create table webhook_endpoints (
  id text collate "C" primary key,
  store_id text collate "C" not null references stores,
  url text not null,
  types text[] not null default '{}',
  secrets jsonb not null,
  created_at timestamptz not null,
  disabled_at timestamptz
);
create index webhook_endpoints_by_store on webhook_endpoints (store_id, id);

create table deliveries (
  id text collate "C" primary key,
  store_id text collate "C" not null,
  endpoint_id text collate "C" not null references webhook_endpoints,
  event_id text collate "C" not null references events,
  state text not null default 'pending' check (state in ('pending', 'delivered', 'undeliverable')),
  attempt integer not null default 0,
  run_at timestamptz not null,
  leased_until timestamptz,
  unique (endpoint_id, event_id)
);
create index deliveries_due on deliveries (run_at) where state = 'pending';

-- How money arrives. Hashes, addresses and nonces are lower-case hex with 0x, except addresses stored for display.

create table settlers (
  network text collate "C" not null,
  address text collate "C" not null,
  state text not null default 'active' check (state in ('active', 'draining', 'retired')),
  -- The next unused account nonce. Taken under this row's lock, in the transaction that inserts the transaction.
  next_nonce bigint not null check (next_nonce >= 0),
  lease_holder text,
  leased_until timestamptz,
  -- Rises with each new holder: a holder that was overtaken cannot take a nonce.
  epoch bigint not null default 0,
  primary key (network, address)
);

create table authorizations (
  network text collate "C" not null,
  asset text collate "C" not null,
  payer text collate "C" not null,
  nonce text collate "C" not null,
  -- Null only for one that was found on the chain after a restore and belongs to no known checkout.
  checkout_id text collate "C" references checkouts,
  store_id text collate "C",
  state text not null check (state in ('claimed', 'sent', 'rejected', 'dead')),
  pay_to text collate "C" not null,
  amount numeric(78, 0) not null check (amount > 0),
  valid_after numeric(78, 0) not null,
  valid_before numeric(78, 0) not null,
  signature bytea not null,
  reason text,
  claimed_at timestamptz not null,
  -- First claim wins for ever, whatever checkout, store or process asks.
  primary key (network, asset, payer, nonce),
  check ((checkout_id is null) = (store_id is null))
);
create unique index authorizations_one_unresolved_per_checkout on authorizations (checkout_id)
  where state in ('claimed', 'sent');
create index authorizations_by_checkout on authorizations (checkout_id);
create index authorizations_to_settle on authorizations (network, claimed_at) where state = 'claimed';

create table transactions (
  network text collate "C" not null,
  settler text collate "C" not null,
  nonce bigint not null check (nonce >= 0),
  created_at timestamptz not null,
  primary key (network, settler, nonce),
  foreign key (network, settler) references settlers
);

-- Which authorizations a transaction carries, in the order of its calls.
create table transaction_calls (
  network text collate "C" not null,
  settler text collate "C" not null,
  settler_nonce bigint not null,
  place integer not null check (place >= 0),
  asset text collate "C" not null,
  payer text collate "C" not null,
  nonce text collate "C" not null,
  primary key (network, settler, settler_nonce, place),
  foreign key (network, settler, settler_nonce) references transactions,
  foreign key (network, asset, payer, nonce) references authorizations
);
create index transaction_calls_by_authorization on transaction_calls (network, asset, payer, nonce);

-- Signed bytes, committed before they are first sent. Several for one nonce: each is the same send at another fee.
create table broadcasts (
  hash text collate "C" primary key,
  network text collate "C" not null,
  settler text collate "C" not null,
  nonce bigint not null,
  bytes bytea not null,
  created_at timestamptz not null,
  first_sent_at timestamptz,
  foreign key (network, settler, nonce) references transactions
);
create index broadcasts_by_transaction on broadcasts (network, settler, nonce);

-- Money seen on the chain.
create table credits (
  network text collate "C" not null,
  block_hash text collate "C" not null,
  log_index integer not null check (log_index >= 0),
  payment_id text collate "C" not null,
  block_number bigint not null,
  block_time timestamptz not null,
  transaction_hash text collate "C" not null,
  -- Place of the log within its transaction: unlike log_index it survives a new inclusion.
  position integer not null check (position >= 0),
  asset text collate "C" not null,
  payer text collate "C" not null,
  -- The authorization's nonce; null for a plain transfer.
  nonce text collate "C",
  pay_to text collate "C" not null,
  amount numeric(78, 0) not null check (amount > 0),
  store_id text collate "C",
  checkout_id text collate "C" references checkouts,
  disposition text not null check (disposition in ('exact', 'late', 'underpaid', 'overpaid', 'unmatched')),
  -- Block time of the first inclusion, kept across reorganisations: it decides what is on time.
  first_seen_block_time timestamptz not null,
  included_at timestamptz not null,
  safe_at timestamptz,
  finalized_at timestamptz,
  reversed_at timestamptz,
  orphaned_at timestamptz,
  primary key (network, block_hash, log_index),
  check (disposition = 'unmatched' or checkout_id is not null)
);
create unique index credits_one_per_log on credits (network, transaction_hash, position) where orphaned_at is null;
create unique index credits_one_per_authorization on credits (network, asset, payer, nonce)
  where orphaned_at is null and nonce is not null;
create unique index credits_one_exact_per_checkout on credits (checkout_id)
  where orphaned_at is null and disposition = 'exact';
create index credits_by_checkout on credits (checkout_id);
create index credits_by_store on credits (store_id, payment_id);

-- What one currency is worth in another: units of the currency per unit of the source's base.
create table rates (
  source text collate "C" not null,
  currency text collate "C" not null check (currency ~ '^[A-Z]{3}$'),
  per_base numeric not null check (per_base > 0),
  as_of timestamptz not null,
  primary key (source, currency)
);

-- Work that comes round by the clock. Leased like all other work; the attempt number is the fence.
create table schedules (
  name text collate "C" primary key,
  run_at timestamptz not null,
  leased_until timestamptz,
  attempt bigint not null default 0
);
