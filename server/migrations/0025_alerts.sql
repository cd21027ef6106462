-- How far the owners of a store were mailed about what needs somebody, so that nothing is told twice.
create table alert_cursors (
  store_id text collate "C" primary key references stores (id),
  -- Events up to this one were told, or happened before anybody was to be told.
  sequence bigint not null,
  -- Endpoints that began to fail before this were told.
  failing_until timestamptz not null,
  -- When the last mail was written; null before the first.
  told_at timestamptz
);

-- What a member does not want to be mailed about this store.
alter table memberships add column muted_alerts text[] not null default '{}';
