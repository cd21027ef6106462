-- A checkout has one valid receipt: of the payment that completes it.
drop index buyer_receipts_valid;
create unique index buyer_receipts_valid on buyer_receipts (checkout_id) where void_at is null;
