-- Transactions that work is asked to look at again, because the audit says that the books lack them. It reads their blocks
-- as it reads those of a transaction that a buyer names; asking writes no payment.
create table lookups (
  network text collate "C" not null,
  transaction_hash text collate "C" not null,
  asked_at timestamptz not null,
  looked_at timestamptz,
  outcome text not null check (outcome in ('looking', 'found', 'not_found')),
  primary key (network, transaction_hash)
);
create index lookups_to_make on lookups (network, asked_at) where outcome = 'looking';
