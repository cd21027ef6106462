-- What the audit must not learn from those whom it checks. The owner's functions write both tables, whoever changes the
-- books; nobody but the audit deletes from the first, and nobody from the second.

-- Days of a wallet whose credits have changed since they were compared, however long ago that was.
create table audit_changes (
  network text collate "C" not null,
  wallet text collate "C" not null,
  day date not null,
  -- So that a change during a comparison is not lost.
  changes bigint not null,
  primary key (network, wallet, day)
);

-- Payments that a store asked to accept. Decisions themselves are deleted soon after they were applied.
create table audit_accepts (
  payment_id text collate "C" primary key
);
insert into audit_accepts (payment_id)
  select distinct payment_id from credits where accepted_at is not null and orphaned_at is null;

create function note_credits() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
begin
  insert into audit_changes as c (network, wallet, day, changes)
  select distinct k.network, k.pay_to, (k.block_time at time zone 'UTC')::date, 1 from new_credits k order by 1, 2, 3
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
    as k (network, wallet, at) order by 1, 2, 3
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
  insert into audit_accepts (payment_id) values (new.payment_id) on conflict do nothing;
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
  finding_id bigint primary key references audit_findings (id),
  store_id text collate "C" not null references stores (id),
  amount numeric(78, 0) not null,
  note text not null check (octet_length(note) between 1 and 1000),
  actor json not null,
  explained_at timestamptz not null
);
