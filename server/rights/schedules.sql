-- Only the audit's own tasks are the audit's: it must not put off what work does.
alter table schedules enable row level security;
drop policy if exists all_rows on schedules;
create policy all_rows on schedules using (true);
drop policy if exists own_tasks on schedules;
create policy own_tasks on schedules as restrictive to farthing_audit
  using (name like 'audit%') with check (name like 'audit%');
