-- The two roles that Farthing connects as. Run it as a superuser in Farthing's database, before the first migration or at
-- any time later; running it again changes nothing.
--
--   farthing_owner  owns the tables: `migrate` connects as this role, nothing else does
--   farthing_app    reads and writes rows: `serve`, `work` and the operator's other commands. It can neither change the
--                   schema nor become another role
--
-- Neither has a password yet: \password farthing_owner and \password farthing_app.
do $$
declare
  each record;
begin
  if to_regrole('farthing_owner') is null then
    create role farthing_owner login;
  end if;
  if to_regrole('farthing_app') is null then
    create role farthing_app login;
  end if;
  execute format('revoke all on database %I from public', current_database());
  execute format('grant connect on database %I to farthing_owner, farthing_app', current_database());
  -- What an earlier version created as another role.
  for each in
    select oid::regclass as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
  loop
    execute format('alter table %s owner to farthing_owner', each.name);
  end loop;
  for each in select oid::regprocedure as name from pg_proc where pronamespace = 'public'::regnamespace loop
    execute format('alter routine %s owner to farthing_owner', each.name);
  end loop;
end $$;

revoke all on schema public from public;
grant usage, create on schema public to farthing_owner;
grant usage on schema public to farthing_app;
grant select, insert, update, delete on all tables in schema public to farthing_app;
alter default privileges for role farthing_owner in schema public
  grant select, insert, update, delete on tables to farthing_app;
