-- A range that is not over takes no lock: readers of the current month must not hold up who books.
create or replace function close_movements(of_store text, before timestamptz) returns boolean
  language plpgsql security definer set search_path = public, pg_temp as $$
begin
  if exists (select 1 from movement_closings c where c.store_id = of_store and c.until >= before) then return true; end if;
  if before > wall_clock() then return false; end if;
  perform 1 from event_counters c where c.store_id = of_store for share;
  insert into movement_closings as c (store_id, until) select s.id, before from stores s where s.id = of_store
  on conflict (store_id) do update set until = excluded.until where c.until < excluded.until;
  return true;
end $$;
