-- Only the audit's own tasks are the audit's: it must not put off what work does, nor work what the audit does.
alter table schedules enable row level security;
drop policy if exists all_rows on schedules;
create policy all_rows on schedules using (true);
drop policy if exists own_tasks on schedules;
create policy own_tasks on schedules as restrictive to farthing_audit
  using (name like 'audit%') with check (name like 'audit%');
drop policy if exists not_the_audits on schedules;
create policy not_the_audits on schedules as restrictive to farthing_work
  using (name not like 'audit%') with check (name not like 'audit%');
