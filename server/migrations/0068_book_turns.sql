-- In another transaction than the one that made them, so that payments wait for neither.
alter table credits validate constraint credits_amount_is_number;
alter table credits validate constraint credits_time_check;
alter table credits validate constraint credits_length_check;

-- Stores take turns in what is to be booked, so that none waits for the backlog or the trouble of another.
alter table movements_due
  -- The store to which the payment belongs, or the wallet of money that belongs to none yet.
  add column turn text collate "C" not null default '',
  -- Later than now if it was tried and could not be booked.
  add column due_at timestamptz not null default clock(),
  -- How often it was refused.
  add column tries integer not null default 0;
update movements_due d set turn = coalesce(
  (select coalesce(k.store_id, k.pay_to) from credits k where k.payment_id = d.item
     order by k.orphaned_at desc nulls first limit 1),
  (select r.store_id from refunds r where r.id = d.item), '');
create index movements_due_by_turn on movements_due (turn, due_at, id);
create index movements_due_refused on movements_due (id) where tries > 0;

create or replace function queue_movement() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
  insert into movements_due (item, turn) values (new.payment_id, coalesce(new.store_id, new.pay_to));
  return null;
end $$;

-- A final refund is watched again if the chain takes its transfer back. Also if it is not complete yet: another transaction
-- may just be writing that it is and need not be watched, and this one waits for it. What has ended does not change.
create function watch_refund() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
  update refunds set is_watched = true where nonce = new.nonce and network = new.network and asset = new.asset
    and wallet = new.payer and status not in ('FAILED', 'CANCELED');
  return null;
end $$;
create trigger refund_is_watched_again after update of orphaned_at on credits
  for each row when (old.finalized_at is not null and new.orphaned_at is not null and new.nonce is not null)
  execute function watch_refund();

-- What had come to each wallet and gone from it by the end of each quarter hour in which a line moved it, since the first
-- line: a balance, and the sums of any range, are a look at two rows.
create table movement_balances (
  store_id text collate "C" not null references stores,
  wallet text collate "C" not null,
  network text collate "C" not null,
  asset text collate "C" not null,
  starts_at timestamptz not null,
  received numeric not null,
  -- Of payments, not of refunds: negative.
  reversed numeric not null,
  -- Negative.
  refunded numeric not null,
  primary key (store_id, wallet, network, asset, starts_at)
);
insert into movement_balances
select store_id, wallet, network, asset, starts_at, sum(received) over w, sum(reversed) over w, sum(refunded) over w
from (select store_id, wallet, network, asset, date_bin('15 minutes', booked_at, 'epoch') as starts_at,
    coalesce(sum(amount) filter (where type = 'payment'), 0) as received,
    coalesce(sum(amount) filter (where type in ('payment_reversed', 'payment_ceded')), 0) as reversed,
    coalesce(sum(amount) filter (where type in ('refund', 'refund_reversed')), 0) as refunded
  from movements where wallet is not null group by 1, 2, 3, 4, 5) q
window w as (partition by store_id, wallet, network, asset order by starts_at);
