-- Where a buyer who does not pay finds the store again.
alter table checkouts add column cancel_url text;
alter table stores
  add column support_email text,
  add column support_url text;
