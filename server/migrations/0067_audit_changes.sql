-- What the audit must not learn from those whom it checks. The owner's functions write both tables, whoever changes the
-- books; nobody but the audit deletes from the first, and nobody from the second.

-- Days of a wallet whose credits have changed since they were compared, however long ago that was.
create table audit_changes (
  network text collate "C" not null,
  wallet text collate "C" not null,
  day date not null,
  -- So that a change during a comparison is not lost.
  changes bigint not null,
  -- Since when it waits. By PostgreSQL's own time: whoever changes the books can move clock() for himself.
  changed_at timestamptz not null default clock_timestamp(),
  primary key (network, wallet, day)
);

-- Which payment a store asked to accept for which checkout. Decisions themselves are deleted soon after they were applied.
create table audit_accepts (
  payment_id text collate "C" not null,
  checkout_id text collate "C" not null,
  store_id text collate "C" not null,
  primary key (payment_id, checkout_id, store_id)
);
insert into audit_accepts (payment_id, checkout_id, store_id)
  select distinct payment_id, checkout_id, store_id from credits
  where accepted_at is not null and orphaned_at is null and checkout_id is not null and store_id is not null;

-- There is no chain to compare what was simulated with.
create function note_credits() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
begin
  insert into audit_changes as c (network, wallet, day, changes)
  select distinct k.network, k.pay_to, (k.block_time at time zone 'UTC')::date, 1 from new_credits k
  where k.network <> 'farthing:simulated' order by 1, 2, 3
  on conflict (network, wallet, day) do update set changes = c.changes + 1;
  return null;
end $$;
create trigger insert_is_noted after insert on credits referencing new table as new_credits
  for each statement execute function note_credits();

create function note_credit() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
begin
  insert into audit_changes as c (network, wallet, day, changes)
  select distinct k.network, k.wallet, (k.at at time zone 'UTC')::date, 1
  from (values (old.network, old.pay_to, old.block_time), (new.network, new.pay_to, new.block_time))
    as k (network, wallet, at) where k.network <> 'farthing:simulated' order by 1, 2, 3
  on conflict (network, wallet, day) do update set changes = c.changes + 1;
  return null;
end $$;
create trigger update_is_noted after update on credits for each row
  when ((old.network, old.transaction_hash, old.asset, old.payer, old.pay_to, old.amount, old.block_time, old.checkout_id,
      old.orphaned_at is null)
    is distinct from (new.network, new.transaction_hash, new.asset, new.payer, new.pay_to, new.amount, new.block_time,
      new.checkout_id, new.orphaned_at is null))
  execute function note_credit();

create function note_accept() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
begin
  -- A decision that names no checkout is about the one that the payment has then.
  insert into audit_accepts (payment_id, checkout_id, store_id)
  select new.payment_id, for_checkout, new.store_id
  from coalesce(new.checkout_id, (select k.checkout_id from credits k where k.payment_id = new.payment_id
    order by k.orphaned_at desc nulls first limit 1)) as for_checkout
  where for_checkout is not null on conflict do nothing;
  return null;
end $$;
create trigger accept_is_noted after insert on decisions for each row when (new.kind = 'accept')
  execute function note_accept();

-- A day on which a wallet had too many transfers has no sums: the next day is compared all the same.
alter table audit_days alter column received drop not null, alter column sent drop not null;
alter table audit_findings drop constraint audit_findings_kind_check;
alter table audit_findings add constraint audit_findings_kind_check check
  (kind in ('missing', 'dust', 'sibling', 'elsewhere', 'unfounded', 'unpaid', 'balance', 'busy'));

-- What a store says about a finding that it knows the reason of. It holds for the amount that was explained.
create table audit_explanations (
  finding_id bigint not null references audit_findings (id),
  store_id text collate "C" not null references stores (id),
  amount numeric(78, 0) not null,
  note text not null check (octet_length(note) between 1 and 1000),
  actor json not null,
  explained_at timestamptz not null,
  primary key (finding_id, amount)
);

-- What no honest payment says and no comparison could read. 0068 looks at the payments that are there.
alter table credits
  add constraint credits_amount_is_number check (amount <> 'NaN') not valid,
  add constraint credits_time_check
    check (block_time >= timestamptz '2009-01-01 00:00Z' and block_time < timestamptz '2200-01-01 00:00Z') not valid,
  add constraint credits_length_check check (octet_length(network) <= 100 and octet_length(transaction_hash) <= 200
    and octet_length(asset) <= 100 and octet_length(payer) <= 100 and octet_length(pay_to) <= 100
    and octet_length(checkout_id) <= 100) not valid;
-- Of credits that are each possible the sum may not be.
alter table audit_days alter column credited type numeric;
