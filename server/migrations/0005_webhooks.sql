-- Webhooks: where stores want to be told, what they are to be told, and what came of each try.

alter table webhook_endpoints
  -- One delivery at a time, in the order of the log.
  add column is_ordered boolean not null default false,
  add column disabled_reason text check (disabled_reason in ('store', 'gone', 'failing')),
  -- A deleted endpoint is disabled too; its row goes when its last delivery is forgotten.
  add column deleted_at timestamptz,
  -- Since when nothing but failures came back; null after a success.
  add column failing_since timestamptz,
  -- The receiver asked to be left alone until then.
  add column held_until timestamptz,
  -- Never later than the first moment at which a pending delivery may be taken; null only while none is pending. So
  -- finding work costs one look at an index over endpoints, however many deliveries a dead endpoint has piled up.
  add column due_at timestamptz,
  add check ((disabled_at is null) = (disabled_reason is null)),
  add check (deleted_at is null or disabled_at is not null);
create unique index webhook_endpoints_one_per_url on webhook_endpoints (store_id, url) where deleted_at is null;
create index webhook_endpoints_due on webhook_endpoints (due_at) where disabled_at is null and due_at is not null;

-- run_at: when a pending delivery may next be taken. Taking it moves run_at to the end of the lease, and leased_until
-- says that a try is out: one that is found there after the lease was interrupted. attempt rises with every taking and
-- is the fence; tries counts those that came to an end since the delivery was last asked for.
alter table deliveries
  add column sequence bigint not null,
  add column tries integer not null default 0,
  add column finished_at timestamptz,
  add check ((state = 'pending') = (finished_at is null));
drop index deliveries_due;
create index deliveries_due on deliveries (endpoint_id, run_at) where state = 'pending';
create index deliveries_in_order on deliveries (endpoint_id, sequence) where state = 'pending';

create table delivery_attempts (
  delivery_id text collate "C" not null references deliveries on delete cascade,
  attempt integer not null,
  started_at timestamptz not null,
  -- Null where the try was interrupted: it may or may not have reached the receiver.
  duration_ms integer,
  -- Null where no answer came; then error says why.
  status integer,
  error text,
  -- The first kilobytes of the answer.
  answer text,
  primary key (delivery_id, attempt)
);
