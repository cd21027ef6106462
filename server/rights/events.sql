-- The event types that serve and the console may write. All others are for work: they say what became of money.
create or replace function refuse_event() returns trigger language plpgsql as $$
begin
  raise insufficient_privilege using message = format('%s may not write %s events', current_user, new.type);
end $$;

create or replace trigger serve_writes_its_own before insert on events for each row
  when (not (new.type = any ('{checkout.created,checkout.processing,checkout.canceled,store.updated,
      wallet.registered,wallet.updated,wallet.retired,wallet.refused,key.created,key.revoked,webhook_endpoint.created,
      webhook_endpoint.updated,webhook_endpoint.deleted,webhook_endpoint.test}'))
    and pg_has_role(current_user, 'farthing_serve', 'usage') and not pg_has_role(current_user, 'farthing_work', 'usage'))
  execute function refuse_event();

create or replace trigger console_writes_its_own before insert on events for each row
  when (not (starts_with(new.type, 'member.') or new.type in ('wallet.confirmed', 'wallet.refused', 'wallet.undone',
      'wallet.registered', 'wallet.retired', 'store.updated'))
    and pg_has_role(current_user, 'farthing_console', 'usage') and not pg_has_role(current_user, 'farthing_work', 'usage'))
  execute function refuse_event();
