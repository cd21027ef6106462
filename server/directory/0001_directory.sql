-- The directory: a small database that several cells share. It says which cell owns a wallet or a settler, and which cells
-- there are. See src/directory/directory.ts for the protocol.

-- Every comparison with the present goes through clock(), so that a test can move it without moving the machine.
create function clock() returns timestamptz language sql stable as $$
  select now() + coalesce(nullif(current_setting('farthing.clock_offset', true), ''), '0')::interval
$$;

-- Raised when the directory may have forgotten something: nothing is granted until every cell has adopted it again.
create table generation (
  only_one boolean primary key default true check (only_one),
  number bigint not null default 1 check (number > 0)
);
insert into generation default values;

create table cells (
  tag text collate "C" primary key check (tag ~ '^[0-9a-z]{2}$'),
  -- The database that is this cell: another with the same tag is refused. Null: known by name only, until it adopts.
  identity text,
  -- The generation that it has adopted.
  generation bigint not null default 0,
  -- The number that its database drew for its last report. A lower one than the cell remembers: the directory was restored.
  stamp bigint not null default 0,
  -- A database with its identity came with a lower stamp: it was restored, or a copy runs beside it.
  is_contested boolean not null default false,
  api_url text not null default '',
  -- Empty: no console.
  console_url text not null default '',
  takes_stores boolean not null default true,
  -- What its `work` reported last.
  stores bigint not null default 0,
  payments_per_hour bigint not null default 0,
  seen_at timestamptz
);

create table owners (
  kind text not null check (kind in ('wallet', 'settler')),
  -- A wallet is owned for a mode and a family ("live EVM"), a settler for a network ("eip155:8453").
  scope text collate "C" not null,
  -- As it is compared: hex in lower case, base58 as it is.
  address text collate "C" not null,
  cell text collate "C" not null references cells (tag),
  basis text not null check (basis in ('proof', 'operator', 'adopted')),
  owned_at timestamptz not null,
  -- The generation in which its cell was last granted or adopted it.
  generation bigint not null,
  -- How often its cell was granted it: it is released only if this has not changed meanwhile.
  grants bigint not null default 1,
  primary key (kind, scope, address)
);
create index owners_by_cell on owners (cell, kind, scope, address);
create index owners_by_address on owners (address);
