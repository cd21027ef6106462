-- What serve and the console may make of a checkout: an OPEN one, which they may claim or cancel. That it is paid, expired
-- or open again is for work to say.
alter table checkouts enable row level security;
drop policy if exists all_rows on checkouts;
create policy all_rows on checkouts using (true);

drop policy if exists created_open on checkouts;
create policy created_open on checkouts as restrictive for insert to farthing_serve, farthing_console
  with check (status = 'OPEN');

-- A policy does not see the row as it was.
create or replace function guard_status() returns trigger language plpgsql
  set search_path = public, pg_temp as $$
begin
  if new.status <> old.status and not (old.status = 'OPEN' and new.status in ('PROCESSING', 'CANCELED'))
    and (pg_has_role('farthing_serve', 'usage') or pg_has_role('farthing_console', 'usage'))
    and not pg_has_role('farthing_work', 'usage')
  then
    raise insufficient_privilege
      using message = format('%s may not move a checkout from %s to %s', current_user, old.status, new.status);
  end if;
  return new;
end $$;
create or replace trigger status_is_guarded before update of status on checkouts
  for each row execute function guard_status();

-- A test store ends its checkouts when it wants to see what follows. Nobody else moves an expiry.
create or replace function guard_expiry() returns trigger language plpgsql
  set search_path = public, pg_temp as $$
begin
  if (new.expires_at > old.expires_at or not is_test_store(new.store_id))
    and (pg_has_role('farthing_serve', 'usage') or pg_has_role('farthing_console', 'usage'))
    and not pg_has_role('farthing_work', 'usage')
  then
    raise insufficient_privilege using message = format('%s may not move when a checkout expires', current_user);
  end if;
  return new;
end $$;
create or replace trigger expiry_is_guarded before update of expires_at on checkouts
  for each row execute function guard_expiry();
