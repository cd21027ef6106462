alter table wallets
  -- The address as credits and authorizations store it: hex of either case is one address.
  add column pay_to text collate "C" not null
    generated always as (case family when 'EVM' then lower(address) else address end) stored,
  -- What the wallet is asked to sign. Deleted once a signature of it was accepted.
  add column challenge text,
  add column challenge_expires_at timestamptz,
  add column proven_at timestamptz,
  -- The wallet is also paid outside this deployment.
  add column shared_elsewhere boolean not null default false,
  add check ((challenge is null) = (challenge_expires_at is null));
create index wallets_by_pay_to on wallets (pay_to);
drop index wallets_by_address;

-- The stores that money belongs to if it matches no checkout: those that have proven the wallet; or else those that had
-- it in use when the money came; or else those that had retired it by then. Who has proven it may decide about the
-- money, and so may a store that is alone.
create function payment_owners(paid_to text, paid_at timestamptz, in_mode text)
returns table (store_id text, may_decide boolean) language sql stable as $$
  with ranked as (
    select w.store_id, case when w.proven_at is not null then 1
      when w.retired_at is null or w.retired_at > paid_at then 2 else 3 end as rank
    from wallets w join stores s on s.id = w.store_id and s.mode = in_mode
    where w.pay_to = paid_to and (w.proven_at is not null or w.created_at <= paid_at)
  ), first as (
    select distinct r.store_id, r.rank from ranked r where r.rank = (select min(rank) from ranked)
  )
  select f.store_id, f.rank = 1 or (select count(*) from first) = 1 from first f
$$;

-- Money without a checkout has no store of its own: its owners are found when it is read.
create index credits_by_wallet on credits (pay_to, payment_id) where checkout_id is null;
create index credits_by_payment on credits (payment_id);

-- Goes to its endpoint even if that is disabled or deleted.
alter table deliveries add column is_security boolean not null default false;
drop index webhook_endpoints_due;
create index webhook_endpoints_due on webhook_endpoints (due_at) where due_at is not null;
