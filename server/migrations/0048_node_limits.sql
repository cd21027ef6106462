-- What a provider's nodes were found to take, where they have refused more.
create table node_limits (
  network text not null,
  provider text not null,
  -- Calls per request, by method.
  calls jsonb not null,
  blocks_max integer,
  per_second double precision,
  found_at timestamptz not null,
  primary key (network, provider)
);
