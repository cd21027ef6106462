-- What a store took and how its checkouts ended, summed per quarter hour from the event log, and again per day of the
-- store's time zone. All of it can be counted again from the log (decision 0048).
create table rollup_cursors (
  store_id text collate "C" primary key references stores,
  -- The last event that is counted. It moves in the transaction that writes what it counts.
  sequence bigint not null default 0,
  -- The zone that the store's days were summed in; null before the first.
  time_zone text
);

-- One row for each quarter hour with something in it: a store's figures for two months are then a few pages.
create table rollup_quarters (
  store_id text collate "C" not null references stores,
  starts_at timestamptz not null,
  figures jsonb not null,
  primary key (store_id, starts_at)
);

create table rollup_days (
  store_id text collate "C" not null references stores,
  -- In the zone that the cursor names.
  day date not null,
  figures jsonb not null,
  primary key (store_id, day)
);
