-- Plain transfers: money sent by hand, without a signature of ours to know it by.

-- An amount that only one checkout may be paid with at an address. It is held until freed_at is set, which is some time
-- after the checkout has ended: what a buyer sends late must still be told apart.
create table reserved_amounts (
  checkout_id text collate "C" not null references checkouts,
  network text collate "C" not null,
  asset text collate "C" not null,
  pay_to text collate "C" not null,
  amount numeric(78, 0) not null check (amount > 0),
  -- Blocks up to this one were read before the amount was reserved: nothing in them was sent for it.
  after_block bigint not null,
  reserved_at timestamptz not null,
  cools_until timestamptz,
  freed_at timestamptz,
  primary key (checkout_id, network, asset)
);
create unique index reserved_amounts_held on reserved_amounts (network, asset, pay_to, amount) where freed_at is null;

-- Transactions that buyers say they paid with: work for whoever reads the chain, and what came of it.
create table pasted_transactions (
  checkout_id text collate "C" not null references checkouts,
  network text collate "C" not null,
  transaction_hash text collate "C" not null,
  pasted_at timestamptz not null,
  looked_at timestamptz,
  outcome text not null default 'looking' check (outcome in ('looking', 'applied', 'hinted', 'not_found')),
  primary key (checkout_id, network, transaction_hash)
);
create index pasted_transactions_to_look_up on pasted_transactions (network, pasted_at) where outcome = 'looking';

-- Checkouts that a payment without one may have been meant for, because their buyers named its transaction. A hash is
-- public: a hint proves nothing, and only the store's word assigns a payment.
create table payment_hints (
  payment_id text collate "C" not null,
  checkout_id text collate "C" not null references checkouts,
  -- What the payment would be to the checkout.
  disposition text not null check (disposition in ('late', 'underpaid', 'overpaid', 'unmatched')),
  created_at timestamptz not null,
  primary key (payment_id, checkout_id)
);
create index payment_hints_by_checkout on payment_hints (checkout_id);

alter table credits
  -- The store's word that it takes this payment for its checkout, or that it needs nothing more.
  add column accepted_at timestamptz,
  add column dismissed_at timestamptz,
  -- Who sent the transaction of a plain transfer, with which account nonce: used by another one, it cannot come back.
  add column sender text collate "C",
  add column sender_nonce bigint;
-- Two tokens may each have their first transfer in one transaction. The hash comes first: an index that began with the
-- network would be taken for one of a network's credits, and walked through, while the table has no statistics yet.
drop index credits_one_per_log;
create unique index credits_one_per_log on credits (transaction_hash, network, asset, position)
  where orphaned_at is null;
create index credits_by_transaction on credits (transaction_hash);
create index credits_taken_back on credits (network) where orphaned_at is not null and reversed_at is null and nonce is null;
create index credits_to_decide on credits (store_id, disposition, payment_id) where disposition <> 'exact';

-- Rises with what a checkout's page shows beside its status: an amount reserved, money that did not complete it.
alter table checkouts add column page_version integer not null default 0;
