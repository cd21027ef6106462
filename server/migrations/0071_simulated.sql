-- The simulated network, farthing:simulated: its chain is rows, and what happens on it is chosen by whoever tests a shop
-- (src/payments/sim). It is for test stores alone. These triggers hold for every role, whatever the code believes.

-- A transfer on it: what is still to happen to it, in this order. It is deleted with its last step.
create table simulated_transfers (
  transaction_hash text collate "C" primary key,
  store_id text collate "C" not null references stores on delete cascade,
  -- Named for a plain transfer whose sender says which checkout it was for.
  checkout_id text collate "C",
  asset text collate "C" not null,
  payer text collate "C" not null,
  pay_to text collate "C" not null,
  amount numeric(78,0) not null check (amount > 0),
  -- That of the authorization; null for a plain transfer.
  nonce text collate "C",
  steps text[] not null check (cardinality(steps) > 0),
  due_at timestamptz not null,
  -- The block that it is in now.
  block_hash text collate "C"
);
create index simulated_transfers_due on simulated_transfers (due_at);
create unique index simulated_transfers_once on simulated_transfers (asset, payer, nonce);


-- False for a store that the role does not see, so that what is unknown is refused.
create function is_test_store(of_store text) returns boolean language sql stable set search_path = public, pg_temp as $$
  select exists (select 1 from stores s where s.id = of_store and s.mode = 'test')
$$;

create function refuse_unless_test(is_test boolean) returns void language plpgsql set search_path = public, pg_temp as $$
begin
  if not coalesce(is_test, false) then
    raise exception 'the simulated network is for test stores only' using errcode = 'check_violation';
  end if;
end $$;

create function guard_simulated() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
  perform refuse_unless_test((new.store_id is null or is_test_store(new.store_id))
    and (new.pay_to not like 'sim\_st\_%' or is_test_store(substr(new.pay_to, 5))));
  return new;
end $$;

create function guard_simulated_checkout() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
  perform refuse_unless_test(is_test_store(new.store_id));
  return new;
end $$;

create function guard_simulated_amount() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
  perform refuse_unless_test((select is_test_store(c.store_id) from checkouts c where c.id = new.checkout_id));
  return new;
end $$;

create trigger simulated_for_tests before insert or update on simulated_transfers
  for each row execute function guard_simulated();
create trigger simulated_for_tests before insert or update of store_id, pay_to, network, checkout_id on credits
  for each row when (new.network = 'farthing:simulated') execute function guard_simulated();
create trigger simulated_for_tests before insert or update of store_id, pay_to, network on authorizations
  for each row when (new.network = 'farthing:simulated') execute function guard_simulated();
create trigger simulated_for_tests before insert or update of checkout_id, network on reserved_amounts
  for each row when (new.network = 'farthing:simulated') execute function guard_simulated_amount();
create trigger simulated_for_tests before insert or update of options, store_id on checkouts
  for each row when (new.options::text like '%farthing:simulated%') execute function guard_simulated_checkout();

create function keep_mode() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
  raise exception 'a store stays what it is: live or test' using errcode = 'check_violation';
end $$;
create trigger mode_is_kept before update of mode on stores
  for each row when (new.mode <> old.mode) execute function keep_mode();

-- On the simulated network each test store has a wallet that names it (src/chains/sim/address.ts).
create or replace function payment_owners(paid_to text, paid_at timestamptz, in_mode text)
  returns table (store_id text, may_decide boolean) language sql stable as $$
  with ranked as (
    select w.store_id, case when w.retired_at <= w.released_at and w.released_at <= paid_at then 4
      when w.proven_at is not null then 1
      when w.retired_at is null or w.retired_at > paid_at then 2 else 3 end as rank
    from wallets w join stores s on s.id = w.store_id and s.mode = in_mode
    where w.pay_to = paid_to and not w.unowned
      and (w.proven_at is not null or w.created_at <= paid_at and w.registration > 0)
  ), first as (
    select distinct r.store_id, r.rank from ranked r where r.rank = (select min(rank) from ranked)
  )
  select f.store_id, f.rank = 1 or (f.rank < 4 and (select count(*) from first) = 1) from first f
  union all
  select s.id, true from stores s where paid_to like 'sim\_%' and s.id = substr(paid_to, 5) and s.mode = 'test' and in_mode = 'test'
$$;
