-- The event types that serve and the console may write. All others are for work: they say what became of money. An event
-- gets its number from work: one that is taken already would stop the store's log. Policies are part of a
-- statement's plan; a trigger with such a condition would cost a third of a create.
alter table events enable row level security;
drop policy if exists all_rows on events;
create policy all_rows on events using (true);

drop policy if exists serve_writes_its_own on events;
create policy serve_writes_its_own on events as restrictive for insert to farthing_serve
  with check (sequence is null and type = any ('{checkout.created,checkout.processing,checkout.canceled,refund.requested,refund.address_updated,refund.declared,refund.canceled,
    link.created,link.updated,link.closed,store.updated,wallet.registered,
    wallet.updated,wallet.retired,wallet.refused,key.created,key.revoked,webhook_endpoint.created,
    webhook_endpoint.updated,webhook_endpoint.deleted,webhook_endpoint.test}'));

drop policy if exists console_writes_its_own on events;
create policy console_writes_its_own on events as restrictive for insert to farthing_console
  with check (sequence is null and (starts_with(type, 'member.') or type = any ('{checkout.created,checkout.canceled,
    refund.requested,refund.address_updated,refund.declared,refund.canceled,link.created,link.updated,link.closed,
    wallet.confirmed,wallet.refused,wallet.undone,wallet.registered,wallet.updated,wallet.retired,store.updated,store.approved,
    store.suspended,store.resumed,key.created,key.revoked,webhook_endpoint.created,webhook_endpoint.updated,
    webhook_endpoint.deleted,webhook_endpoint.test}')));
