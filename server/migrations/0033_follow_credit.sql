-- An authorization for a refund has a credit of its own only if the transfer is the refund's: its nonce may have moved
-- another amount, or to somebody else, before the database was restored.
--
-- The statements of transactions are planned anew each time, and so was the one in this trigger, for every row: that took
-- longer than writing the row. It finds one authorization by its whole key, so one plan fits all.
create or replace function follow_credit() returns trigger language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  update authorizations a set is_credited = not a.is_credited
  where a.network = new.network and a.asset = new.asset and a.payer = new.payer and a.nonce = new.nonce
    and a.is_credited <> exists (select 1 from credits k where k.network = a.network and k.asset = a.asset
      and k.payer = a.payer and k.nonce = a.nonce and k.orphaned_at is null
      and k.checkout_id is not distinct from a.checkout_id
      and (a.refund_id is null or (k.pay_to = a.pay_to and k.amount = a.amount)));
  return null;
end $$;
