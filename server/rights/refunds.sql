-- What serve and the console may make of a refund: they ask for it, take a signature or a transaction for it, declare or
-- cancel it. That money went back, or can no longer go, is for work to say.
alter table refunds enable row level security;
drop policy if exists all_rows on refunds;
create policy all_rows on refunds using (true);

drop policy if exists created_unpaid on refunds;
create policy created_unpaid on refunds as restrictive for insert to farthing_serve, farthing_console
  with check (status in ('REQUESTED', 'SENT'));

create or replace function guard_refund() returns trigger language plpgsql
  set search_path = public, pg_temp as $$
begin
  if new.status <> old.status and not (old.status = 'REQUESTED' and new.status in ('SIGNED', 'SENT', 'DECLARED', 'CANCELED'))
    and (pg_has_role('farthing_serve', 'usage') or pg_has_role('farthing_console', 'usage'))
    and not pg_has_role('farthing_work', 'usage')
  then
    raise insufficient_privilege
      using message = format('%s may not move a refund from %s to %s', current_user, old.status, new.status);
  end if;
  return new;
end $$;
create or replace trigger refund_is_guarded before update of status on refunds
  for each row execute function guard_refund();

-- Once something was handed out to be signed, who receives how much stays as it is, whoever asks.
create or replace function keep_terms() returns trigger language plpgsql
  set search_path = public, pg_temp as $$
begin
  if old.nonce is not null and old.recipient is distinct from new.recipient then
    raise insufficient_privilege using message = format('%s was handed out to be signed: its recipient stays', old.id);
  end if;
  return new;
end $$;
create or replace trigger terms_are_kept before update of recipient on refunds
  for each row execute function keep_terms();
