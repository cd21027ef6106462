-- For a superuser, once, in Farthing's database: only Farthing's roles connect to it, and farthing_owner owns what is in
-- it, including what an earlier version created as another role. Run roles.sql first.
do $$
declare
  each record;
begin
  execute format('revoke all on database %I from public', current_database());
  execute format(
    'grant connect on database %I to farthing_owner, farthing_serve, farthing_work, farthing_console, farthing_operator,
      farthing_audit',
    current_database());
  for each in
    select oid::regclass as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v')
  loop
    execute format('alter table %s owner to farthing_owner', each.name);
  end loop;
  for each in select oid::regprocedure as name from pg_proc where pronamespace = 'public'::regnamespace loop
    execute format('alter routine %s owner to farthing_owner', each.name);
  end loop;
end $$;

revoke all on schema public from public;
grant usage, create on schema public to farthing_owner;
-- Not left to grants.sql: farthing_owner does not own the schema, so it cannot pass this on.
grant usage on schema public to farthing_serve, farthing_work, farthing_console, farthing_operator, farthing_audit;
