-- Who may change the wallet that new checkouts are paid to: a key alone, or a key and an owner who confirms it.
-- Null: an owner confirms if the store is live and has one.
alter table stores add column wallet_changes text check (wallet_changes in ('key', 'member'));

-- Up to when an owner has seen what happened to the store's wallets.
alter table memberships add column wallets_seen_at timestamptz;

-- A wallet whose registration is 0 has never been current: it waits for an owner, or waited in vain.
create table wallet_changes (
  id text collate "C" primary key,
  store_id text collate "C" not null references stores,
  family text not null check (family in ('EVM', 'SOLANA')),
  -- Make the wallet current, or retire the current one.
  kind text not null check (kind in ('use', 'retire')),
  wallet_id text collate "C" not null references wallets,
  actor json not null,
  asked_at timestamptz not null,
  -- Until when an owner can confirm it; null if it needed nobody.
  expires_at timestamptz,
  -- It was refused, withdrawn or replaced, and changed nothing.
  ended_at timestamptz,
  -- The store's changes that took effect: 1, 2, 3 …
  made integer,
  made_at timestamptz,
  confirmed_by json,
  -- The current wallet before and after.
  previous_id text collate "C" references wallets,
  next_id text collate "C" references wallets,
  undone_at timestamptz,
  undone_by json,
  -- When to look for open checkouts that would still pay to next_id; null if there is nothing to cancel.
  cancel_at timestamptz,
  check ((made is null) = (made_at is null)),
  check (made is null or ended_at is null),
  check (undone_at is null or made is not null),
  check ((undone_at is null) = (undone_by is null))
);
create unique index wallet_changes_made on wallet_changes (store_id, made);
create unique index wallet_changes_one_waiting on wallet_changes (store_id, family)
  where made is null and ended_at is null;
create index wallet_changes_by_store on wallet_changes (store_id, asked_at);
create index wallet_changes_by_wallet on wallet_changes (wallet_id) where made is null and ended_at is null;
create index wallet_changes_to_cancel on wallet_changes (cancel_at) where cancel_at is not null;

-- As before, but a wallet that nobody has confirmed entitles to nothing.
create or replace function payment_owners(paid_to text, paid_at timestamptz, in_mode text)
returns table (store_id text, may_decide boolean)
language sql stable as $$
  with ranked as (
    select w.store_id, case when w.proven_at is not null then 1
      when w.retired_at is null or w.retired_at > paid_at then 2 else 3 end as rank
    from wallets w join stores s on s.id = w.store_id and s.mode = in_mode
    where w.pay_to = paid_to
      and (w.proven_at is not null or w.created_at <= paid_at and w.registration > 0)
  ), first as (
    select distinct r.store_id, r.rank from ranked r where r.rank = (select min(rank) from ranked)
  )
  select f.store_id, f.rank = 1 or (select count(*) from first) = 1 from first f
$$;
