-- The days that were compared belong to wallets, and the console sees those of its store.
alter table audit_days enable row level security;
drop policy if exists all_rows on audit_days;
create policy all_rows on audit_days using (true);
drop policy if exists own_wallets on audit_days;
create policy own_wallets on audit_days as restrictive to farthing_console
  using (wallet in (select w.pay_to from wallets w));
