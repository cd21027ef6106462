-- Checkouts that ended long ago, with all that belongs to them, in tables partitioned by the month in a checkout's id: a
-- month is exported or dropped as a whole. The rows of one checkout are either all here or all in the tables that are
-- written to, never in both. They come and go only by the functions below, each call of which is one transaction's work.
--
-- The columns are those of the original tables, in the same order. Whoever adds one there adds it here and to the view.
create table archived_checkouts (like checkouts, primary key (id)) partition by range (id);
create index archived_checkouts_by_order on archived_checkouts (store_id, order_id, id);
create index archived_checkouts_by_status on archived_checkouts (store_id, status, id);
create index archived_checkouts_by_store on archived_checkouts (store_id, id);

create table archived_events (like events, primary key (checkout_id, id)) partition by range (checkout_id);
create index archived_events_by_id on archived_events (id);
create index archived_events_by_sequence on archived_events (store_id, sequence);

create table archived_credits (like credits, primary key (checkout_id, block_hash, log_index, network))
  partition by range (checkout_id);
create index archived_credits_by_payment on archived_credits (payment_id);
create index archived_credits_by_store on archived_credits (store_id, payment_id);
create index archived_credits_by_payer on archived_credits (store_id, payer, payment_id);
create index archived_credits_by_disposition on archived_credits (store_id, disposition, payment_id)
  where disposition <> 'exact';
create index archived_credits_by_transaction on archived_credits (transaction_hash);
create index archived_credits_by_authorization on archived_credits (nonce, payer, asset, network)
  where nonce is not null;

create table archived_authorizations (like authorizations, primary key (checkout_id, payer, nonce, asset, network))
  partition by range (checkout_id);
create index archived_authorizations_by_key on archived_authorizations (payer, nonce, asset, network);
create index archived_authorizations_by_identifier on archived_authorizations (store_id, payment_identifier)
  where payment_identifier is not null;

create table archived_reserved_amounts (like reserved_amounts, primary key (checkout_id, network, asset))
  partition by range (checkout_id);
create table archived_pasted_transactions (like pasted_transactions,
  primary key (checkout_id, network, transaction_hash)) partition by range (checkout_id);
create table archived_payment_hints (like payment_hints, primary key (checkout_id, payment_id))
  partition by range (checkout_id);

-- What settlers sent for them, by the month in which each transaction was made. A transaction carries the payments of
-- many checkouts, and moves once all of these are here. Refunds are not archived, but end.
create table archived_transactions (like transactions, primary key (created_at, network, settler, nonce))
  partition by range (created_at);
create index archived_transactions_by_key on archived_transactions (network, settler, nonce);
create table archived_transaction_calls (like transaction_calls, transaction_at timestamptz,
  primary key (transaction_at, settler, settler_nonce, network, place)) partition by range (transaction_at);
create index archived_transaction_calls_by_key on archived_transaction_calls (settler, settler_nonce, network);
create index archived_transaction_calls_by_authorization
  on archived_transaction_calls (nonce, payer, asset, network);
create table archived_broadcasts (like broadcasts, transaction_at timestamptz, primary key (transaction_at, hash))
  partition by range (transaction_at);
create index archived_broadcasts_by_transaction on archived_broadcasts (network, settler, nonce);
create index archived_broadcasts_by_hash on archived_broadcasts (hash);

-- Up to which number events of a store may be in the archive. Raised together with the move.
create table archived_logs (
  store_id text collate "C" primary key references stores,
  last_sequence bigint not null
);

-- How many times rows have come to a month such as 2026-08, and how many times they had when all of it was last exported.
-- Raised together with the move, one move after the other: whoever reads a number sees the rows of all moves up to it. It
-- stays when the month is dropped, so an export never stands for what comes later.
create table archived_months (
  month text collate "C" primary key,
  arrivals bigint not null,
  exported_arrivals bigint
);

-- Both places as one. They show what the reader may see in the tables themselves.
create view all_checkouts with (security_invoker = true) as
  select * from checkouts union all select * from archived_checkouts;
create view all_events with (security_invoker = true) as
  select * from events union all select * from archived_events;
create view all_credits with (security_invoker = true) as
  select * from credits union all select * from archived_credits;
create view all_authorizations with (security_invoker = true) as
  select * from authorizations union all select * from archived_authorizations;
create view all_reserved_amounts with (security_invoker = true) as
  select * from reserved_amounts union all select * from archived_reserved_amounts;
create view all_pasted_transactions with (security_invoker = true) as
  select * from pasted_transactions union all select * from archived_pasted_transactions;
create view all_payment_hints with (security_invoker = true) as
  select * from payment_hints union all select * from archived_payment_hints;
create view all_transaction_calls with (security_invoker = true) as
  select * from transaction_calls
  union all select network, settler, settler_nonce, place, asset, payer, nonce from archived_transaction_calls;
-- Without the bytes, which not everybody may read.
create view all_broadcasts with (security_invoker = true) as
  select hash, network, settler, nonce, created_at, first_sent_at, last_sent_at, taken_at, unfunded_at, refusal
  from broadcasts
  union all
  select hash, network, settler, nonce, created_at, first_sent_at, last_sent_at, taken_at, unfunded_at, refusal
  from archived_broadcasts;

-- Deleting an event would look for its deliveries, which no index finds by event alone. The mover leaves events with
-- deliveries alone, and whoever writes a delivery for an event brings its checkout back first.
alter table deliveries drop constraint deliveries_event_id_fkey;

-- The time in an id, and the first id of a time with the same prefix and cell: see src/ids.ts.
create function time_of_checkout(id text) returns timestamptz language sql immutable strict as $$
  select to_timestamp(sum((strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(id, 5 + i, 1)) - 1)
    * power(32::numeric, 10 - i)) / 1000.0) from generate_series(1, 10) as i
$$;
create function first_checkout_at(like_id text, at timestamptz) returns text language sql stable strict as $$
  select substr(like_id, 1, 5) || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
    (div((extract(epoch from at) * 1000)::bigint, power(32::numeric, 10 - i))::bigint % 32)::integer + 1, 1), '' order by i)
    || repeat('0', 16)
  from generate_series(1, 10) as i
$$;

-- Makes the partitions of a checkout's month, named archived_events_2026_08 and so on. True if it made them. Attaching
-- keeps nobody from reading or writing meanwhile, which creating one in place would. Only for a checkout that there is:
-- each month makes every statement about the archive take longer to plan.
create function open_archive_month(of_checkout text) returns boolean language plpgsql security definer
  set search_path = public, pg_temp set timezone = 'UTC' as $$
declare
  month timestamptz;
  each text;
  made text;
begin
  if of_checkout !~ '^ch_[0-9a-z]{2}[0-9a-hjkmnp-tv-z]{26}$' then raise 'not a checkout: %', of_checkout; end if;
  month := date_trunc('month', time_of_checkout(of_checkout));
  if month > clock() then raise 'a month to come: %', month; end if;
  if to_regclass('archived_checkouts_' || to_char(month, 'YYYY_MM')) is not null then return false; end if;
  -- One at a time: of two that come together, the second finds it made.
  lock table archived_checkouts in share update exclusive mode;
  if to_regclass('archived_checkouts_' || to_char(month, 'YYYY_MM')) is not null then return false; end if;
  if not exists (select 1 from checkouts where id = of_checkout) then raise 'no such checkout: %', of_checkout; end if;
  foreach each in array array['archived_checkouts', 'archived_events', 'archived_credits', 'archived_authorizations',
    'archived_reserved_amounts', 'archived_pasted_transactions', 'archived_payment_hints']
  loop
    made := each || '_' || to_char(month, 'YYYY_MM');
    execute format('create table %I (like %I)', made, each);
    execute format('alter table %I attach partition %I for values from (%L) to (%L)', each, made,
      first_checkout_at(of_checkout, month), first_checkout_at(of_checkout, month + interval '1 month'));
  end loop;
  return true;
end $$;

-- The same for the transactions of a month.
create function open_transactions_month(of_time timestamptz) returns void language plpgsql
  set search_path = public, pg_temp set timezone = 'UTC' as $$
declare
  month constant timestamptz := date_trunc('month', of_time);
  each text;
  made text;
begin
  if to_regclass('archived_transactions_' || to_char(month, 'YYYY_MM')) is not null then return; end if;
  foreach each in array array['archived_transactions', 'archived_transaction_calls', 'archived_broadcasts'] loop
    made := each || '_' || to_char(month, 'YYYY_MM');
    execute format('create table %I (like %I)', made, each);
    execute format('alter table %I attach partition %I for values from (%L) to (%L)', each, made, month,
      month + interval '1 month');
  end loop;
end $$;

-- Called in the transaction that brought rows to the month of this time.
create function note_arrival(at timestamptz) returns void language sql set search_path = public, pg_temp
  set timezone = 'UTC' as $$
  insert into archived_months as m (month, arrivals) values (to_char(at, 'YYYY-MM'), 1)
  on conflict (month) do update set arrivals = m.arrivals + 1
$$;

-- The functions below find every row by an index, whatever statistics say: a table may have grown since they were made.
-- Those that move to the archive plan each statement once: otherwise the check of every foreign key of every row would
-- be planned anew, which takes longer than all the rest.

-- Moves checkouts of one month that ended, and to which nothing has happened, for some days, and at least 30, whatever
-- is asked: the program reads what is younger without looking here. Looks at `batch` of them from the checkout `from_id`
-- on, below `before_id`; the caller has opened its month. Whatever may still move money, or waits for somebody, stays.
create function archive_checkouts(from_id text, before_id text, days integer, batch integer)
  returns table (looked integer, moved integer, last_id text) language plpgsql security definer
  set search_path = public, pg_temp set timezone = 'UTC' set enable_seqscan = off set enable_hashjoin = off
  set enable_mergejoin = off set enable_material = off set plan_cache_mode = force_generic_plan as $$
declare
  ended_before constant timestamptz := clock() - make_interval(days => greatest(days, 30));
  month_ends constant text := first_checkout_at(from_id,
    date_trunc('month', time_of_checkout(from_id)) + interval '1 month');
  ids text[];
begin
  if exists (select 1 from restores where finished_at is null) then return; end if;
  -- Whoever writes to the archive locks this table first, as dropping a month does: neither meets the other halfway.
  lock table only archived_checkouts in row exclusive mode;
  -- Whoever changes anything about a checkout holds its row, or finds it gone and brings it back.
  ids := array(select c.id from checkouts c where c.id >= from_id and c.id < before_id and c.id < month_ends
    and c.status in ('COMPLETED', 'EXPIRED', 'CANCELED') and c.expires_at < ended_before
    order by c.id limit batch for update skip locked);
  looked := cardinality(ids);
  last_id := ids[looked];

  -- Read after the rows are locked, so nothing here can change any more.
  ids := array(select c.id from unnest(ids) as c (id) where
    not exists (select 1 from events e where e.checkout_id = c.id and (e.sequence is null or e.created_at >= ended_before))
    and not exists (select 1 from events e join webhook_endpoints w on w.store_id = e.store_id
      join deliveries d on d.endpoint_id = w.id and d.event_id = e.id where e.checkout_id = c.id)
    and not exists (select 1 from credits k where k.checkout_id = c.id and (
      coalesce(k.orphaned_at, k.included_at) >= ended_before or k.finalized_at >= ended_before
      or case when k.orphaned_at is null then k.finalized_at is null or k.witnessed_at is null
          or (k.disposition <> 'exact' and k.accepted_at is null and k.dismissed_at is null)
        else k.reversed_at is null and not exists (select 1 from credits o where o.payment_id = k.payment_id
          and o.checkout_id = k.checkout_id and o.orphaned_at is null) end))
    and not exists (select 1 from authorizations a where a.checkout_id = c.id and a.state in ('claimed', 'sent')
      and (not a.is_credited or greatest(a.claimed_at, a.failed_at) >= ended_before))
    -- A signature that was never sent is dead once its time has passed. Solana counts it in blocks, which are fewer.
    and not exists (select 1 from authorizations a where a.checkout_id = c.id and a.state in ('rejected', 'dead')
      and (greatest(a.claimed_at, a.resolved_at, a.failed_at) >= ended_before
        or (not a.is_credited and a.valid_before >= extract(epoch from ended_before))))
    and not exists (select 1 from reserved_amounts r where r.checkout_id = c.id
      and (r.freed_at is null or r.freed_at >= ended_before))
    and not exists (select 1 from pasted_transactions p where p.checkout_id = c.id
      and (p.outcome = 'looking' or p.pasted_at >= ended_before))
    -- A store sees what money without a checkout may have been meant for, for as long as it has none.
    and not exists (select 1 from payment_hints h join credits k on k.payment_id = h.payment_id
      and k.checkout_id is null where h.checkout_id = c.id)
    and not exists (select 1 from refunds r where r.checkout_id = c.id and (r.is_watched
      or r.status in ('REQUESTED', 'SIGNED', 'SENT') or (r.status = 'COMPLETED' and r.finality is distinct from 'finalized')
      or greatest(r.created_at, r.completed_at, r.ended_at) >= ended_before))
    and not exists (select 1 from decisions d where d.decided_at is null and (d.checkout_id = c.id
      or d.payment_id in (select k.payment_id from credits k where k.checkout_id = c.id)))
    order by c.id);
  moved := cardinality(ids);
  if moved > 0 then
    with gone as (delete from payment_hints where checkout_id = any(ids) returning *)
      insert into archived_payment_hints select * from gone;
    with gone as (delete from pasted_transactions where checkout_id = any(ids) returning *)
      insert into archived_pasted_transactions select * from gone;
    with gone as (delete from reserved_amounts where checkout_id = any(ids) returning *)
      insert into archived_reserved_amounts select * from gone;
    with gone as (delete from authorizations where checkout_id = any(ids) and state in ('claimed', 'sent') returning *)
      insert into archived_authorizations select * from gone;
    with gone as (delete from authorizations where checkout_id = any(ids) and state in ('rejected', 'dead') returning *)
      insert into archived_authorizations select * from gone;
    with gone as (delete from credits where checkout_id = any(ids) returning *)
      insert into archived_credits select * from gone;
    with gone as (delete from events where checkout_id = any(ids) returning *),
      kept as (insert into archived_events select * from gone)
      insert into archived_logs as l (store_id, last_sequence)
      select store_id, max(sequence) from gone group by store_id order by store_id
      on conflict (store_id) do update set last_sequence = excluded.last_sequence
        where l.last_sequence < excluded.last_sequence;
    with gone as (delete from checkouts where id = any(ids) returning *)
      insert into archived_checkouts select * from gone;
    perform note_arrival(time_of_checkout(from_id));
  end if;
  return next;
end $$;

-- Moves a settler's transactions whose outcome has been known for that long, once the payments that they carried are all in
-- the archive and their refunds have ended that long ago: nobody reads a transaction for those any more. What it cost may
-- never be known. Looks at `batch` of them from a nonce on; `next_nonce` is where to look on, `is_done` whether what
-- follows is too young. Whoever brings a checkout back meanwhile goes first.
create function archive_transactions(of_network text, of_settler text, from_nonce bigint, days integer, batch integer)
  returns table (moved integer, next_nonce bigint, is_done boolean) language plpgsql security definer
  set search_path = public, pg_temp set enable_seqscan = off set enable_hashjoin = off
  set enable_mergejoin = off set enable_material = off set plan_cache_mode = force_generic_plan as $$
declare
  -- A day later than checkouts, so that those have gone ahead.
  ended_before constant timestamptz := clock() - make_interval(days => greatest(days, 30) + 1);
  looked integer := 0;
  each record;
  months timestamptz[] := '{}';
begin
  if not pg_try_advisory_xact_lock(402402403, 30) or exists (select 1 from restores where finished_at is null) then
    return;
  end if;
  lock table only archived_checkouts in row exclusive mode;
  moved := 0;
  next_nonce := from_nonce;
  is_done := true;
  for each in select t.* from transactions t where t.network = of_network and t.settler = of_settler
    and t.nonce >= from_nonce order by t.nonce limit batch
  loop
    exit when each.created_at >= ended_before;
    looked := looked + 1;
    next_nonce := each.nonce + 1;
    is_done := looked < batch;
    continue when each.mined_at is null or each.mined_at >= ended_before or exists (select 1 from transaction_calls c
      join authorizations a on a.payer = c.payer and a.nonce = c.nonce and a.asset = c.asset and a.network = c.network
      left join refunds r on r.id = a.refund_id
      where c.settler = of_settler and c.settler_nonce = each.nonce and c.network = of_network
        and ((a.is_credited or a.state in ('rejected', 'dead')) and not r.is_watched
          and (r.status in ('FAILED', 'CANCELED') or (r.status = 'COMPLETED' and r.finality = 'finalized'))
          and greatest(r.created_at, r.completed_at, r.ended_at) < ended_before) is not true);
    perform open_transactions_month(each.created_at);
    with gone as (delete from transaction_calls where settler = of_settler and settler_nonce = each.nonce
        and network = of_network returning *)
      insert into archived_transaction_calls select gone.*, each.created_at from gone;
    with gone as (delete from broadcasts where network = of_network and settler = of_settler and nonce = each.nonce
        returning *)
      insert into archived_broadcasts select gone.*, each.created_at from gone;
    with gone as (delete from transactions where network = of_network and settler = of_settler and nonce = each.nonce
        returning *)
      insert into archived_transactions select * from gone;
    moved := moved + 1;
    months := months || date_trunc('month', each.created_at, 'UTC');
  end loop;
  perform note_arrival(month) from (select distinct unnest(months) as month order by 1) m;
  return next;
end $$;

-- Moves these checkouts back, because something is to be written about them. Returns how many there were. Of two
-- transactions that want the same one, the second waits for the first and finds it where it belongs.
create function bring_back(ids text[]) returns integer language plpgsql security definer
  set search_path = public, pg_temp set enable_seqscan = off set enable_hashjoin = off
  set enable_mergejoin = off set enable_material = off as $$
declare
  found_ids text[];
  each record;
begin
  perform pg_advisory_xact_lock_shared(402402403, 30);
  found_ids := array(select id from archived_checkouts where id = any(ids) order by id for update);
  if cardinality(found_ids) = 0 then return 0; end if;
  with gone as (delete from archived_checkouts where id = any(found_ids) returning *)
    insert into checkouts select * from gone;
  with gone as (delete from archived_events where checkout_id = any(found_ids) returning *)
    insert into events overriding system value select * from gone;
  -- A key that did not pay may have been claimed again since, for another checkout. The one that paid stays, else the
  -- newer one.
  delete from authorizations a using archived_authorizations b
    where b.checkout_id = any(found_ids) and b.is_credited
      and a.payer = b.payer and a.nonce = b.nonce and a.asset = b.asset and a.network = b.network
      and a.state in ('rejected', 'dead') and not a.is_credited;
  with gone as (delete from archived_authorizations where checkout_id = any(found_ids) returning *)
    insert into authorizations select * from gone on conflict (payer, nonce, asset, network) do nothing;
  with gone as (delete from archived_credits where checkout_id = any(found_ids) returning *)
    insert into credits select * from gone;
  with gone as (delete from archived_reserved_amounts where checkout_id = any(found_ids) returning *)
    insert into reserved_amounts select * from gone;
  with gone as (delete from archived_pasted_transactions where checkout_id = any(found_ids) returning *)
    insert into pasted_transactions select * from gone;
  with gone as (delete from archived_payment_hints where checkout_id = any(found_ids) returning *)
    insert into payment_hints select * from gone;
  -- With what was sent for them.
  for each in
    select distinct c.network, c.settler, c.settler_nonce as nonce
    from (select * from authorizations where checkout_id = any(found_ids) and state in ('claimed', 'sent')
      union all select * from authorizations where checkout_id = any(found_ids) and state in ('rejected', 'dead')) a
    join archived_transaction_calls c on c.nonce = a.nonce and c.payer = a.payer and c.asset = a.asset
      and c.network = a.network
    order by 1, 2, 3
  loop
    with gone as (delete from archived_transactions where network = each.network and settler = each.settler
        and nonce = each.nonce returning *)
      insert into transactions select * from gone;
    with gone as (delete from archived_broadcasts where network = each.network and settler = each.settler
        and nonce = each.nonce returning *)
      insert into broadcasts select hash, network, settler, nonce, bytes, created_at, first_sent_at, last_sent_at,
        taken_at, unfunded_at, refusal from gone;
    with gone as (delete from archived_transaction_calls where settler = each.settler
        and settler_nonce = each.nonce and network = each.network returning *)
      insert into transaction_calls select network, settler, settler_nonce, place, asset, payer, nonce from gone;
  end loop;
  return cardinality(found_ids);
end $$;

revoke execute on function open_archive_month, open_transactions_month, note_arrival, archive_checkouts, archive_transactions,
  bring_back from public;
