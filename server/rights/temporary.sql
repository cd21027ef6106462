-- A temporary table could stand before one of ours in a search path, so nobody makes any. Where the role that migrates does
-- not own the database, this does nothing, and owner.sql has done it.
do $$ begin execute format('revoke temporary on database %I from public', current_database()); end $$;
