-- No single provider of nodes decides.

-- The providers that reported this block and the same logs in it.
alter table blocks add column told_by text[] not null default '{}';

alter table followers
  -- How many providers reported the head; null on chains that are not read block by block.
  add column witnesses integer,
  -- What the providers contradict each other about, while they do.
  add column dispute text,
  add column disputed_at timestamptz;

-- Providers that were caught lying, for the operator.
create table node_faults (
  network text collate "C" not null,
  provider text collate "C" not null,
  fault text not null,
  faults bigint not null,
  last_at timestamptz not null,
  primary key (network, provider)
);

alter table credits
  -- When enough providers had reported it.
  add column witnessed_at timestamptz,
  -- Whether it may complete its checkout: it is witnessed, or within what one provider alone may complete.
  add column counts boolean not null default true,
  -- A credit that a provider had made up leaves its place to what is really there, and gets a negative one.
  drop constraint credits_log_index_check;
update credits set witnessed_at = coalesce(safe_at, included_at);
create index credits_told_alone on credits (network) where witnessed_at is null and orphaned_at is null;

-- The position of a transfer counts only those like it in its transaction, with the same payer, recipient and amount:
-- if a reading misses another transfer, it stays the same.
drop index credits_one_per_log;
update credits k set position = n.position
from (
  select network, block_hash, log_index,
    row_number() over (partition by network, block_hash, transaction_hash, asset, payer, pay_to, amount order by log_index)
      - 1 as position
  from credits
) n
where n.network = k.network and n.block_hash = k.block_hash and n.log_index = k.log_index and n.position <> k.position;
create unique index credits_one_per_log on credits (transaction_hash, network, asset, payer, pay_to, amount, position)
  where orphaned_at is null;
