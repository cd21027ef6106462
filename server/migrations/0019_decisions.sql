-- What stores have decided about payments and `work` has yet to apply, with the outcome that `serve` waits for. The
-- event log is the record; these rows are only a queue.
create table decisions (
  id text collate "C" primary key,
  store_id text collate "C" not null references stores,
  payment_id text collate "C" not null,
  kind text not null check (kind in ('accept', 'dismiss')),
  checkout_id text collate "C",
  actor json not null,
  created_at timestamptz not null,
  decided_at timestamptz,
  outcome json,
  check ((decided_at is null) = (outcome is null)),
  check (kind = 'accept' or checkout_id is null)
);

-- Asking again while a decision waits is the same decision.
create unique index decisions_waiting on decisions (payment_id, store_id, kind, coalesce(checkout_id, ''))
  where decided_at is null;
create index decisions_to_apply on decisions (id) where decided_at is null;
create index decisions_applied on decisions (decided_at) where decided_at is not null;

-- The rights of the database roles as they were last granted (server/rights).
create table granted_rights (
  only_row boolean primary key default true check (only_row),
  sql text not null
);
