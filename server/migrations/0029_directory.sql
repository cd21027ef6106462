-- What this deployment knows about the directory that it shares with other cells: one row. See src/directory/directory.ts.
create table directory_state (
  only_one boolean primary key default true check (only_one),
  -- The directory's epoch in which this cell asserted what it has. Null: this deployment is the only cell.
  epoch bigint,
  -- Drawn at the first adoption. A backup and a replica keep it; another database with the same tag has another.
  identity text,
  -- Raised before a claim is given up. Whoever read an earlier one may not use a claim.
  number bigint not null default 0,
  -- The directory's count of our reports: it never goes back, unless the directory was restored.
  reports bigint not null default 0,
  takes_stores boolean not null default true,
  -- Never written: roles that lock the row need a column that they may update.
  held boolean,
  check (epoch is null or identity is not null)
);
insert into directory_state default values;

-- Registered, but not claimed by this cell: it may not be paid.
alter table wallets add column unclaimed boolean not null default false;

-- Used here, although another cell owns it: this database was restored. New checkouts are not paid to such a wallet, and
-- nothing new is sent from such a settler.
alter table wallets add column elsewhere boolean not null default false;
create index wallets_elsewhere on wallets (pay_to) where elsewhere;
alter table settlers add column elsewhere boolean not null default false;
