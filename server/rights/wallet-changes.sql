-- See wallets.sql.
create or replace function guard_change() returns trigger language plpgsql
  set search_path = public, pg_temp as $$
begin
  if new.made is not null and pg_has_role('farthing_serve', 'usage') and not pg_has_role('farthing_console', 'usage')
    and needs_owner(new.store_id)
  then
    raise insufficient_privilege
      using message = format('%s may not make a change of wallet in %s: an owner confirms that', current_user, new.store_id);
  end if;
  return new;
end $$;
create or replace trigger making_is_guarded before insert or update on wallet_changes
  for each row execute function guard_change();
