-- Money that completed no checkout and that nobody has decided about: the inbox reads these alone, however many a store
-- has put aside. A payment that completes its checkout is in neither index, nor is what anybody can send thousands of:
-- less than a cent without a checkout. A cent is at least 10,000 units, because no token has fewer than six decimals.
create index credits_open on credits (store_id, payment_id)
  where checkout_id is not null and disposition <> 'exact' and orphaned_at is null and dismissed_at is null
    and accepted_at is null;
create index credits_open_by_wallet on credits (pay_to, payment_id)
  where checkout_id is null and amount >= 10000 and orphaned_at is null and dismissed_at is null
    and accepted_at is null;
