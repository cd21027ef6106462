-- Which cell this database belongs to. It never changes: the tag is in every id and key that was made here.
create table cell (
  only_row boolean primary key default true check (only_row),
  tag text collate "C" not null check (tag ~ '^[0-9a-z]{2}$')
);
-- A database from before this table says it by its first store.
insert into cell (tag) select substr(id, 4, 2) from stores order by created_at, id limit 1;
