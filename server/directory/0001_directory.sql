-- The directory: a small database that several cells share. It says which cell owns a wallet or a settler, and which cells
-- there are. See src/directory/directory.ts for the protocol.

-- Every comparison with the present goes through clock(), so that a test can move it without moving the machine.
create function clock() returns timestamptz language sql stable as $$
  select now() + coalesce(nullif(current_setting('farthing.clock_offset', true), ''), '0')::interval
$$;

-- Raised when the directory may have forgotten something: claims are granted again once every cell has asserted its own.
create table epoch (
  only_one boolean primary key default true check (only_one),
  number bigint not null default 1 check (number > 0),
  raised_at timestamptz not null default now()
);
insert into epoch default values;

create table cells (
  tag text collate "C" primary key check (tag ~ '^[0-9a-z]{2}$'),
  -- The database that is this cell: another with the same tag is refused. Null: known by name only, as below.
  identity text,
  api_url text not null default '',
  -- Empty: no console.
  console_url text not null default '',
  takes_stores boolean not null default true,
  -- What its `work` reported last.
  stores bigint not null default 0,
  payments_per_hour bigint not null default 0,
  seen_at timestamptz,
  -- Counts the reports. A cell that sees it go back knows that the directory was restored.
  reports bigint not null default 0,
  -- A copy of its database reports beside it: nothing is granted to the cell, and it can give nothing up.
  is_doubled boolean not null default false,
  asserted_epoch bigint not null,
  -- Null: known by name only, after a restore, until it asserts what it has.
  adopted_at timestamptz
);

create table claims (
  kind text not null check (kind in ('wallet', 'settler')),
  -- A wallet is claimed for a mode and a family ("live EVM"), a settler for a network ("eip155:8453").
  scope text collate "C" not null,
  -- As it is compared: hex in lower case, base58 as it is.
  address text collate "C" not null,
  cell text collate "C" not null references cells (tag),
  basis text not null check (basis in ('proof', 'operator', 'adopted')),
  claimed_at timestamptz not null,
  -- The epoch in which its cell claimed, used or asserted it last.
  epoch bigint not null,
  -- Since when its cell has seen no use for it.
  idle_at timestamptz,
  primary key (kind, scope, address)
);
create index claims_by_cell on claims (cell, kind, scope, address);
