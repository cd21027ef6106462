-- What the law asks a seller to put on a receipt.
alter table stores
  add column legal_name text,
  add column legal_address text,
  add column tax_id text;
