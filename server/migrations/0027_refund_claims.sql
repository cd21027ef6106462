-- A link with which a buyer says where a refund should go. A new link replaces the one before.
create table refund_claims (
  refund_id text collate "C" primary key references refunds,
  store_id text collate "C" not null references stores,
  -- SHA-256 of the token in the link.
  token_hash bytea not null unique check (octet_length(token_hash) = 32),
  -- Who made the link.
  actor json not null,
  made_at timestamptz not null,
  expires_at timestamptz not null,
  -- What the buyer named, once, and the browser that did: SHA-256 of the secret in its cookie. No other browser sees the
  -- code, so whoever took the link cannot have the buyer confirm somebody else's address.
  address text collate "C",
  browser_hash bytea check (octet_length(browser_hash) = 32),
  code text collate "C",
  named_at timestamptz,
  confirmed_at timestamptz,
  confirmed_by json,
  check (num_nulls(address, browser_hash, code, named_at) in (0, 4)),
  check (confirmed_at is null or named_at is not null),
  check ((confirmed_at is null) = (confirmed_by is null))
);
create index refund_claims_by_store on refund_claims (store_id, refund_id);

-- A transaction that the store named, and when it was last looked for.
alter table refunds
  add column named_at timestamptz,
  add column looked_at timestamptz,
  -- Who named it, or declared the refund.
  add column said_by json;
create index refunds_named on refunds (network, looked_at)
  where status = 'SENT' and way = 'sent' and position is null;
