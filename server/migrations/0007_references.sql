-- Transfers that carry a reference (Solana Pay): the checkout is known by it, so the amount need not be one of a kind.
alter table reserved_amounts
  add column reference text collate "C",
  -- When the chain was last asked for transactions that carry it.
  add column looked_at timestamptz;
drop index reserved_amounts_held;
create unique index reserved_amounts_held on reserved_amounts (network, asset, pay_to, amount)
  where freed_at is null and reference is null;
create unique index reserved_amounts_by_reference on reserved_amounts (reference) where reference is not null;
create index reserved_amounts_to_look_for on reserved_amounts (network, looked_at)
  where reference is not null and freed_at is null;
