-- What the settlement engine needs beside the constraints that were there before it.

-- The follower's view of each chain: one process leads at a time, any other may take over.
create table followers (
  network text collate "C" primary key,
  lease_holder text,
  leased_until timestamptz,
  head_number bigint not null default 0,
  head_time timestamptz,
  base_fee numeric(78, 0),
  -- When the head last moved, by our clock: a chain that stands still is a reason not to take payments.
  head_seen_at timestamptz,
  safe_number bigint not null default 0,
  finalized_number bigint not null default 0
);

-- The canonical chain as far as it was read, oldest pruned. A reorganisation replaces its upper end.
create table blocks (
  network text collate "C" not null,
  number bigint not null,
  hash text collate "C" not null,
  parent_hash text collate "C" not null,
  block_time timestamptz not null,
  primary key (network, number)
);

alter table settlers
  add column alive_at timestamptz,
  -- Account nonce at the follower's head: every transaction below it is mined.
  add column mined_nonce bigint not null default 0,
  add column balance_wei numeric(78, 0),
  add column balance_at timestamptz,
  add column created_at timestamptz not null default now();

alter table transactions
  -- Set when the account nonce has passed it: from then on what its calls left undone stays undone.
  add column mined_at timestamptz;
create index transactions_unmined on transactions (network, settler, nonce) where mined_at is null;

alter table broadcasts add column last_sent_at timestamptz;

alter table authorizations
  -- How many settler nonces have carried it. Fees replaced and bytes sent again count as the same send.
  add column sends integer not null default 0,
  -- Whether the payer's address has code: such a payer goes alone, under a gas cap.
  add column is_contract boolean not null default false,
  -- A block that spent the nonce on something else, or canceled it; the authorization is dead once that block is deep.
  add column spent_block_number bigint,
  add column spent_block_hash text collate "C",
  add column spent_reason text,
  add column payment_identifier text collate "C",
  add column resolved_at timestamptz;
create index authorizations_unresolved on authorizations (network, valid_before) where state in ('claimed', 'sent');
create index authorizations_in_flight on authorizations (network, asset, payer) where state in ('claimed', 'sent');
create unique index authorizations_by_identifier on authorizations (store_id, payment_identifier)
  where payment_identifier is not null;

create index credits_by_block on credits (network, block_number) where orphaned_at is null;
create index wallets_by_address on wallets (lower(address)) where family = 'EVM';

-- After a restore no payment is taken until nothing that was claimed before it can still be mined.
create table restores (
  network text collate "C" primary key,
  started_at timestamptz not null,
  finished_at timestamptz
);

-- The disposition that an event has told the store of.
alter table credits add column announced text;
create index credits_by_authorization on credits (network, asset, payer, nonce);
create index credits_unmatched on credits (network, asset, payer, nonce) where orphaned_at is null and checkout_id is null;

create index checkouts_processing on checkouts (id) where status = 'PROCESSING';
