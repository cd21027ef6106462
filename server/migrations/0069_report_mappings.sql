-- How a store's own program wants its books: columns and how they are written. `place` also limits how many there are.
create table report_mappings (
  store_id text collate "C" not null references stores,
  place smallint not null check (place between 1 and 10),
  name text not null,
  delimiter text not null,
  decimal text not null,
  dates text not null,
  has_mark boolean not null,
  -- [{"name": heading, "field": what is in it}]
  columns jsonb not null,
  primary key (store_id, place)
);
