-- Solana beside EVM chains. What the tables call by EVM's names means there:
--   authorizations  nonce is the SHA-256 of the message, signature the payer's half-signed transaction, and valid_before
--                   the height of the last block that may include it
--   transactions    nonce counts what a settler has signed; mined_at is set once its fate is final
--   broadcasts      hash is the transaction's first signature
--   credits         block_number is the slot; block_hash is the slot and the transaction, because a node does not say
--                   which block it was: included again in another slot, it stands in another place
--   followers       head_number is the newest confirmed slot

alter table authorizations
  -- Whose signature is missing: nobody else can send it. Null where any settler can.
  add column settler text collate "C";

-- Where wallets are paid on chains that keep each token of each wallet in an account of its own. Without it nothing can
-- be paid to the wallet.
create table token_accounts (
  network text collate "C" not null,
  asset text collate "C" not null,
  -- The wallet.
  owner text collate "C" not null,
  -- When it was found to be there; null while it is not known to be.
  ready_at timestamptz,
  checked_at timestamptz not null,
  -- When a settler last undertook to create it, committed before it is tried: what counts against the day's limit.
  created_at timestamptz,
  primary key (network, asset, owner)
);
create index token_accounts_by_owner on token_accounts (owner) where ready_at is not null;
create index token_accounts_by_creation on token_accounts (created_at) where created_at is not null;

create index wallets_by_solana_address on wallets (address) where family = 'SOLANA';

-- From when on the chain is asked for what the database lost.
alter table restores add column since timestamptz;
