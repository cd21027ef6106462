-- The roles that Farthing connects as. `migrate` runs this where its own role may create roles; elsewhere a superuser
-- runs it once in Farthing's database. Running it again changes nothing.
--
--   farthing_owner     owns the tables: `migrate` connects as it, and nothing else does
--   farthing_serve     `serve`
--   farthing_work      `work`
--   farthing_console   the console, which `serve` connects by CONSOLE_DATABASE_URL
--   farthing_operator  the operator's commands: reads and writes all rows
--   farthing_audit     `audit`: reads payments, writes what it found
--
-- What each may do is in grants.sql, which `migrate` applies. None can log in until it gets a password:
--   alter role farthing_serve login password '…'
-- On a database service where you cannot name your roles, make your own logins members of these.
do $$
declare
  each text;
begin
  foreach each in array array['farthing_owner', 'farthing_serve', 'farthing_work', 'farthing_console', 'farthing_operator',
    'farthing_audit']
  loop
    if to_regrole(each) is null then
      begin
        execute format('create role %I nologin', each);
      -- Another database of the same server may be at it.
      exception when duplicate_object or unique_violation then
      end;
    end if;
  end loop;
end $$;
