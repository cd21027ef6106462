-- What this deployment knows about the directory that it shares with other cells: one row. See src/directory/directory.ts.
create table directory_state (
  only_one boolean primary key default true check (only_one),
  -- The directory's epoch in which this cell asserted what it has. Null: this deployment is the only cell.
  epoch bigint,
  -- Drawn at the first adoption. A backup and a replica keep it; another database with the same tag has another.
  identity text,
  -- Raised before a claim is given up. Whoever read an earlier one may not use a claim.
  number bigint not null default 0,
  -- The directory's count of our reports: it never goes back, unless the directory was restored.
  reports bigint not null default 0,
  takes_stores boolean not null default true,
  -- Never written: roles that lock the row need a column that they may update.
  held boolean,
  check (epoch is null or identity is not null)
);
insert into directory_state default values;

-- Registered, but not claimed by this cell: it may not be paid.
alter table wallets add column unclaimed boolean not null default false;

-- Used here, although another cell owns it: this database was restored. New checkouts are not paid to such a wallet, and
-- nothing new is sent from such a settler.
alter table wallets add column elsewhere boolean not null default false;
create index wallets_elsewhere on wallets (pay_to) where elsewhere;
alter table settlers add column elsewhere boolean not null default false;

-- When this cell gave the retired wallet up, so that another cell may have it.
alter table wallets add column released_at timestamptz;

-- As before, but money that came after a wallet was given up is another cell's: it is seen by those that had the wallet,
-- and nobody here may decide about it. A wallet that is used again is retired later, or not at all.
create or replace function payment_owners(paid_to text, paid_at timestamptz, in_mode text)
returns table (store_id text, may_decide boolean)
language sql stable as $$
  with ranked as (
    select w.store_id, case when w.retired_at <= w.released_at and w.released_at <= paid_at then 4
      when w.proven_at is not null then 1
      when w.retired_at is null or w.retired_at > paid_at then 2 else 3 end as rank
    from wallets w join stores s on s.id = w.store_id and s.mode = in_mode
    where w.pay_to = paid_to
      and (w.proven_at is not null or w.created_at <= paid_at and w.registration > 0)
  ), first as (
    select distinct r.store_id, r.rank from ranked r where r.rank = (select min(rank) from ranked)
  )
  select f.store_id, f.rank = 1 or (f.rank < 4 and (select count(*) from first) = 1) from first f
$$;
