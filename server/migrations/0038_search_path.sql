-- Nobody's temporary table stands in for ours in what a trigger does. Those that guard rights are in rights/.
alter function follow_credit() set search_path = public, pg_temp;
