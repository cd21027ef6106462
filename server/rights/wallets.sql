-- Where an owner confirms changes of wallet, serve cannot put one to use, neither another nor one that was retired, nor
-- write down that one was: whoever takes it over must leave nothing behind that redirects money, and nothing that an owner
-- would go back to.
create or replace function needs_owner(of_store text) returns boolean language sql stable
  set search_path = public, pg_temp as $$
  select coalesce(s.wallet_changes, case when s.mode = 'live' and exists (select 1 from memberships m
    where m.store_id = s.id and m.role = 'owner') then 'member' else 'key' end) = 'member'
  from stores s where s.id = of_store
$$;

create or replace function guard_wallet() returns trigger language plpgsql
  set search_path = public, pg_temp as $$
begin
  if (case when tg_op = 'INSERT' then new.registration > 0
        else new.registration <> old.registration or (old.retired_at is not null and new.retired_at is null) end)
    and pg_has_role('farthing_serve', 'usage') and not pg_has_role('farthing_console', 'usage')
    and needs_owner(new.store_id)
  then
    raise insufficient_privilege
      using message = format('%s may not put a wallet of %s to use: an owner confirms that', current_user, new.store_id);
  end if;
  return new;
end $$;
create or replace trigger use_is_guarded before insert or update of registration, retired_at on wallets
  for each row execute function guard_wallet();
