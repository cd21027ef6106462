-- What may go back of a payment. One row per payment as the chain knows it, which survives another block and, unlike our
-- ids, a restored database. `reserved` is raised in the statement that creates a refund, and lowered only in the
-- transaction that records that the refund can no longer move money.
create table refund_totals (
  network text collate "C" not null,
  asset text collate "C" not null,
  -- Payer and nonce of a payment by authorization, otherwise transaction and place of the transfer.
  identity text collate "C" not null,
  payment_id text collate "C" not null,
  -- Of stores that share a wallet, the first to refund unmatched money owns it while anything is reserved.
  store_id text collate "C" not null references stores,
  amount numeric(78, 0) not null check (amount > 0),
  reserved numeric(78, 0) not null,
  primary key (network, asset, identity),
  constraint refund_totals_within_payment check (reserved between 0 and amount)
);
create index refund_totals_by_payment on refund_totals (payment_id);

create table refunds (
  id text collate "C" primary key,
  store_id text collate "C" not null references stores,
  payment_id text collate "C" not null,
  checkout_id text collate "C",
  network text collate "C" not null,
  asset text collate "C" not null,
  identity text collate "C" not null,
  -- The store's wallet that was paid.
  wallet text collate "C" not null,
  amount numeric(78, 0) not null check (amount > 0),
  -- Null until it is known. Once something was handed out to be signed, it stays as it is.
  recipient text collate "C",
  way text not null check (way in ('signed', 'sent')),
  reason text check (octet_length(reason) between 1 and 500),
  status text not null
    check (status in ('REQUESTED', 'SIGNED', 'SENT', 'COMPLETED', 'DECLARED', 'FAILED', 'CANCELED')),
  version integer not null check (version >= 1),
  actor json not null,
  idempotency_key text collate "C",
  body_hash text collate "C",
  created_at timestamptz not null,
  -- Which of the payment's nonces was handed out to be signed.
  slot smallint check (slot between 0 and 4),
  nonce text collate "C",
  signed_at timestamptz,
  cancel_asked_at timestamptz,
  -- The transaction that moved the money, or that the store says did.
  transaction_hash text collate "C",
  -- The transfer's place in it, for refunds that the store sent: one transfer proves one refund.
  position integer check (position >= 0),
  finality text check (finality in ('included', 'safe', 'finalized')),
  declared text check (octet_length(declared) between 1 and 500),
  failure text,
  completed_at timestamptz,
  -- When it was proven that it can no longer move money: from then on it does not count.
  ended_at timestamptz,
  -- Whether facts may still change its status.
  is_watched boolean not null default false,
  foreign key (network, asset, identity) references refund_totals,
  check ((slot is null) = (nonce is null)),
  check ((idempotency_key is null) = (body_hash is null)),
  check ((ended_at is not null) = (status in ('FAILED', 'CANCELED')))
) with (fillfactor = 80);
create index refunds_by_store on refunds (store_id, id);
create index refunds_by_payment on refunds (payment_id);
create index refunds_by_checkout on refunds (checkout_id) where checkout_id is not null;
create index refunds_by_nonce on refunds (nonce) where nonce is not null;
create index refunds_watched on refunds (id) where is_watched;
create unique index refunds_by_idempotency_key on refunds (store_id, idempotency_key) where idempotency_key is not null;
create unique index refunds_one_per_transfer on refunds (transaction_hash, network, asset, position)
  where position is not null;

-- A signed refund is an authorization in the other direction: the store's wallet pays, the buyer is paid. `prepared`: it
-- was handed out to be signed, and counts until its nonce is proven unused past its window.
alter table authorizations
  add column refund_id text collate "C" references refunds,
  drop constraint authorizations_state_check,
  add constraint authorizations_state_check check (state in ('prepared', 'claimed', 'sent', 'rejected', 'dead')),
  drop constraint authorizations_check,
  add constraint authorizations_check check (checkout_id is null or store_id is not null),
  add constraint authorizations_prepared_check check (state <> 'prepared' or refund_id is not null);

-- Payments go first: lanes look for refunds only if a batch has room.
drop index authorizations_to_settle;
create index authorizations_to_settle on authorizations (network, claimed_at)
  where state = 'claimed' and refund_id is null;
create index authorizations_refunds_to_settle on authorizations (network, claimed_at)
  where state = 'claimed' and refund_id is not null;
-- The same for what was handed out and may be dead.
create index authorizations_prepared on authorizations (network, valid_before) where state = 'prepared';

alter table stores
  -- What managers may refund per day, in whole tokens.
  add column manager_refund_limit numeric not null default 0 check (manager_refund_limit >= 0);
