-- How many bytes of events a store's own requests have written in an hour. A store has as many rows as it had such
-- transactions at once: each takes one that no other holds, so that none waits for another's commit, whatever else it
-- holds. Each row begins again with its first use in another hour.
create table event_bytes (
  store_id text collate "C" not null references stores,
  slot integer not null,
  hour timestamptz not null,
  bytes bigint not null check (bytes > 0),
  primary key (store_id, slot)
);
