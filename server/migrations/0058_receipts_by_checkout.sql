-- Everybody with the URL of a paid checkout reads its receipts, void ones too.
drop index buyer_receipts_void;
create index buyer_receipts_by_checkout on buyer_receipts (checkout_id, payment_id);
-- Mails of a receipt that has become void are taken back while events are numbered.
create index mails_about on mails (about);
