-- The moves of a checkout that serve and the console may make: an OPEN one is claimed or canceled. That it is paid,
-- expired or open again is for work to say. A role that is both serve and work may do what either may.
create or replace function refuse_status() returns trigger language plpgsql as $$
begin
  raise insufficient_privilege using message = format('%s may not make a checkout %s', current_user, new.status);
end $$;

create or replace trigger created_open before insert on checkouts for each row
  when (new.status <> 'OPEN'
    and (pg_has_role(current_user, 'farthing_serve', 'usage') or pg_has_role(current_user, 'farthing_console', 'usage'))
    and not pg_has_role(current_user, 'farthing_work', 'usage'))
  execute function refuse_status();

create or replace trigger moved_by_its_role before update of status on checkouts for each row
  when (new.status <> old.status and not (old.status = 'OPEN' and new.status in ('PROCESSING', 'CANCELED'))
    and (pg_has_role(current_user, 'farthing_serve', 'usage') or pg_has_role(current_user, 'farthing_console', 'usage'))
    and not pg_has_role(current_user, 'farthing_work', 'usage'))
  execute function refuse_status();
