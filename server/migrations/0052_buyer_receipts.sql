-- Receipts for buyers. A number is never given again: after a restore another series begins, because the lost numbers may
-- have been printed or mailed.
alter table event_log add column receipt_series text not null default '';

create table buyer_receipt_counters (
  store_id text collate "C" not null references stores,
  series text collate "C" not null,
  year integer not null,
  last_number integer not null,
  primary key (store_id, series, year)
);

-- Without foreign keys to checkouts and payments: a receipt stays when retention deletes those.
create table buyer_receipts (
  store_id text collate "C" not null references stores,
  series text collate "C" not null,
  year integer not null,
  number integer not null,
  checkout_id text collate "C" not null,
  payment_id text collate "C" not null,
  -- The seller as it was then.
  store_name text not null,
  legal_name text,
  legal_address text,
  tax_id text,
  price_amount text not null,
  price_currency text not null,
  network text not null,
  asset text not null,
  amount numeric not null,
  -- The day in the store's time zone.
  issued_on date not null,
  issued_at timestamptz not null,
  -- When the chain had taken the payment back for good.
  void_at timestamptz,
  -- How many times somebody had it mailed.
  mailed smallint not null default 0,
  primary key (store_id, series, year, number)
);
create unique index buyer_receipts_valid on buyer_receipts (checkout_id, payment_id) where void_at is null;
create index buyer_receipts_void on buyer_receipts (checkout_id) where void_at is not null;
