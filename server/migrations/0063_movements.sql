-- breaking
-- What happened to each store's money, one line each, as its accountant needs it. The version before this one numbers
-- events without booking what they say.

-- The time now, also within a long transaction. clock() is the time at which the transaction began.
create function wall_clock() returns timestamptz language sql volatile as $$
  select clock_timestamp() + coalesce(nullif(current_setting('farthing.clock_offset', true), ''), '0')::interval
$$;

-- Never changed and never deleted. Without foreign keys to checkouts, payments and refunds: a line stays when retention
-- deletes those. Names nobody but the store's own wallet.
create table movements (
  store_id text collate "C" not null references stores,
  -- 1, 2, 3 … without gaps.
  number bigint not null check (number > 0),
  id text collate "C" not null,
  type text not null check (type in ('payment', 'payment_reversed', 'payment_ceded', 'acceptance', 'dismissal', 'refund',
    'refund_reversed', 'refund_declared')),
  -- When its block came, or when somebody decided.
  happened_at timestamptz not null,
  -- Never smaller than that of the line before.
  booked_at timestamptz not null,
  network text collate "C" not null,
  asset text collate "C" not null,
  -- In the token's smallest unit. It left or reached `wallet`; without one it moved nothing that we know of.
  amount numeric(78, 0) not null,
  wallet text collate "C",
  transaction_hash text collate "C",
  place integer,
  payment_id text collate "C" not null,
  refund_id text collate "C",
  checkout_id text collate "C",
  order_id text,
  price_amount text,
  price_currency text,
  -- How the price became an amount: units of the price's currency in dollars.
  rate text,
  rate_source text,
  rate_time timestamptz,
  -- The line that this one takes back.
  reverses bigint,
  -- Who decided: the type and id of an actor, never a name.
  actor_type text,
  actor_id text,
  disposition text,
  -- In the currency that the store reported in then, with at most six decimals; null if there was no reliable rate.
  value numeric,
  value_currency text not null,
  -- The value of one token; null if the value is the price.
  value_rate numeric,
  -- 'price' if the value is the price, 'par' for dollars, else whose rate it is.
  value_rate_source text,
  value_rate_time timestamptz,
  primary key (store_id, number),
  check ((wallet is null) = (type in ('acceptance', 'dismissal', 'refund_declared'))),
  check ((reverses is null) = (type not in ('payment_reversed', 'payment_ceded', 'refund_reversed'))),
  check ((value is null) = (value_rate_source is null)),
  check (amount = 0 or type not in ('acceptance', 'dismissal'))
);
create index movements_by_time on movements (store_id, booked_at, number);
create index movements_by_payment on movements (payment_id, store_id, number);
-- A line is taken back once.
create unique index movements_reversed on movements (store_id, reverses) where reverses is not null;

-- Their sums per quarter hour of booked_at. All offsets of time zones are whole quarter hours.
create table movement_quarters (
  store_id text collate "C" not null references stores,
  starts_at timestamptz not null,
  type text not null,
  network text collate "C" not null,
  asset text collate "C" not null,
  currency text not null,
  lines integer not null,
  amount numeric not null,
  -- Of the lines that have a value; `unvalued` is the amount of the others.
  value numeric not null,
  unvalued numeric not null,
  primary key (store_id, starts_at, type, network, asset, currency)
);

-- Until when a store's lines were exported as complete. No line is booked before it any more, even if the clock goes back.
create table movement_closings (
  store_id text collate "C" primary key references stores,
  until timestamptz not null
);

-- Whether no line that is booked before this time can come any more. Waits for a transaction that is booking, because it
-- holds the store's counter. A time to come is not closed.
create function close_movements(of_store text, before timestamptz) returns boolean
  language plpgsql security definer set search_path = public, pg_temp as $$
begin
  if exists (select 1 from movement_closings c where c.store_id = of_store and c.until >= before) then return true; end if;
  perform 1 from event_counters c where c.store_id = of_store for share;
  if before > wall_clock() then return false; end if;
  insert into movement_closings as c (store_id, until) select s.id, before from stores s where s.id = of_store
  on conflict (store_id) do update set until = excluded.until where c.until < excluded.until;
  return true;
end $$;

-- Payments and refunds to look at whose change no event tells. `work` books them and deletes the row.
create table movements_due (
  id bigint primary key generated always as identity,
  item text collate "C" not null
);

-- A payment that completes a checkout has an event when it is final. Any other has none.
create function queue_movement() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
  insert into movements_due (item) values (new.payment_id);
  return null;
end $$;
create trigger movement_is_due after update of finalized_at, reversed_at, checkout_id on credits
  for each row when (
    (new.disposition <> 'exact' and new.finalized_at is not null and old.finalized_at is null)
    or (new.checkout_id is null and new.reversed_at is not null and old.reversed_at is null)
    or (new.finalized_at is not null and new.checkout_id is distinct from old.checkout_id))
  execute function queue_movement();

-- Which wallet sent a refund that the store paid by itself, and when its block came.
alter table refunds add column sent_from text collate "C", add column sent_at timestamptz;

-- What was final before there were lines is booked now.
insert into movements_due (item)
select distinct payment_id from credits where finalized_at is not null and orphaned_at is null order by 1;
insert into movements_due (item)
select id from refunds where status = 'DECLARED' or (status = 'COMPLETED' and finality = 'finalized') order by 1;
