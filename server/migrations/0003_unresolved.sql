-- A stored answer is only ever given back byte for byte: as JSON it was parsed for nothing.
alter table idempotency_keys alter column answer type text using answer::text;

-- What is unresolved is little, what was paid grows for ever, and both have the state `sent`. So that nothing which looks
-- for the first walks through the second, each authorization knows whether it has a live credit of its own checkout. The
-- credits remain the truth: this follows them, in the statement that changes them, whoever that is.
alter table authorizations add column is_credited boolean not null default false;
update authorizations a set is_credited = true from credits k
where k.network = a.network and k.asset = a.asset and k.payer = a.payer and k.nonce = a.nonce
  and k.orphaned_at is null and k.checkout_id is not distinct from a.checkout_id;

create function follow_credit() returns trigger language plpgsql as $$
begin
  update authorizations a set is_credited = not a.is_credited
  where a.network = new.network and a.asset = new.asset and a.payer = new.payer and a.nonce = new.nonce
    and a.is_credited <> exists (select 1 from credits k where k.network = a.network and k.asset = a.asset
      and k.payer = a.payer and k.nonce = a.nonce and k.orphaned_at is null
      and k.checkout_id is not distinct from a.checkout_id);
  return null;
end $$;
create trigger credit_is_followed after insert or update of orphaned_at, checkout_id on credits
  for each row when (new.nonce is not null) execute function follow_credit();

drop index authorizations_unresolved, authorizations_in_flight;
create index authorizations_unresolved on authorizations (network, valid_before)
  where state in ('claimed', 'sent') and not is_credited;
create index authorizations_in_flight on authorizations (network, asset, payer)
  where state in ('claimed', 'sent') and not is_credited;
create index authorizations_spent on authorizations (network, spent_block_number) where spent_block_number is not null;

-- Of the credits on a chain, those that have yet to become safe, and final.
drop index credits_by_block;
create index credits_not_safe on credits (network, block_number) where orphaned_at is null and safe_at is null;
create index credits_not_final on credits (network, block_number) where orphaned_at is null and finalized_at is null;
create index credits_unannounced on credits (network) where orphaned_at is null and checkout_id is null and announced is null;
