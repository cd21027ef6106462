-- breaking
-- The archive goes: its rows come back, and its tables, views and functions are dropped. What ended long ago is deleted
-- instead, if the operator asks for it (RETENTION_DAYS).
select bring_back(array(select id from archived_checkouts order by id));
insert into transactions select * from archived_transactions;
insert into broadcasts select hash, network, settler, nonce, bytes, created_at, first_sent_at, last_sent_at, taken_at,
  unfunded_at, refusal from archived_broadcasts;
insert into transaction_calls select network, settler, settler_nonce, place, asset, payer, nonce
  from archived_transaction_calls;

drop view all_checkouts, all_events, all_credits, all_authorizations, all_reserved_amounts, all_pasted_transactions,
  all_payment_hints, all_transaction_calls, all_broadcasts;
drop function open_archive_month, open_transactions_month, note_arrival, archive_checkouts, archive_transactions,
  bring_back, first_checkout_at, time_of_checkout;
drop table archived_checkouts, archived_events, archived_credits, archived_authorizations, archived_reserved_amounts,
  archived_pasted_transactions, archived_payment_hints, archived_transactions, archived_transaction_calls,
  archived_broadcasts, archived_months;

-- Up to which number events of a store may be missing. Raised by the statement that deletes them.
alter table archived_logs rename to truncated_logs;
alter table truncated_logs rename constraint archived_logs_pkey to truncated_logs_pkey;
alter table truncated_logs rename constraint archived_logs_store_id_fkey to truncated_logs_store_id_fkey;
delete from truncated_logs l where l.last_sequence <=
  (select count(*) from events e where e.store_id = l.store_id and e.sequence <= l.last_sequence);

-- What must never count again although its rows are gone: each final credit by its place on the chain, and by its nonce if
-- it has one. Hashed, so that the rows are narrow and name nobody. They stay for ever.
create table kept_credits (
  key bytea primary key,
  payment_id text collate "C" not null,
  outcome text not null check (outcome in ('exact', 'accepted', 'dismissed'))
);
create function credit_key(network text, transaction_hash text, asset text, payer text, pay_to text, amount numeric,
  "position" integer) returns bytea language sql immutable as $$
  select sha256(convert_to(concat_ws(' ', 'transfer', network, transaction_hash, asset, payer, pay_to, amount::text,
    "position"::text), 'UTF8'))
$$;
create function nonce_key(network text, asset text, payer text, nonce text) returns bytea language sql immutable as $$
  select case when nonce is not null
    then sha256(convert_to(concat_ws(' ', 'nonce', network, asset, payer, nonce), 'UTF8')) end
$$;

-- Which of these checkouts ended before a time and can never change again: nothing has happened to them since, nothing
-- may still move money, and nothing waits for somebody or is still to be counted.
create function list_over(ids text[], ended_before timestamptz) returns setof text language sql stable
  set search_path = public, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set enable_material = off as $$
  select c.id from unnest(ids) as i (id) cross join lateral (select * from checkouts c where c.id = i.id offset 0) c
  where c.status in ('COMPLETED', 'EXPIRED', 'CANCELED') and c.expires_at < ended_before
    and not exists (select 1 from events e left join rollup_cursors u on u.store_id = e.store_id where e.checkout_id = c.id
      and (e.sequence is null or e.created_at >= ended_before or e.sequence > coalesce(u.sequence, 0)))
    and not exists (select 1 from events e join webhook_endpoints w on w.store_id = e.store_id
      join deliveries d on d.endpoint_id = w.id and d.event_id = e.id where e.checkout_id = c.id)
    and not exists (select 1 from credits k where k.checkout_id = c.id and (
      coalesce(k.orphaned_at, k.included_at) >= ended_before or k.finalized_at >= ended_before
      or k.accepted_at >= ended_before or k.dismissed_at >= ended_before
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
    -- What was sent for it has its outcome. A key may have been claimed for it in either group of states.
    and not exists (select 1 from (
        select * from authorizations where checkout_id = c.id and state in ('claimed', 'sent')
        union all select * from authorizations where checkout_id = c.id and state in ('rejected', 'dead')) a
      join transaction_calls s on s.nonce = a.nonce and s.payer = a.payer and s.asset = a.asset and s.network = a.network
      join transactions t on t.network = s.network and t.settler = s.settler and t.nonce = s.settler_nonce
      where t.mined_at is null or t.mined_at >= ended_before)
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
  order by c.id
$$;

-- Deletes checkouts that are over for some days, and at least 90, whatever is asked. Looks at `batch` of them after the id
-- `after_id`, below `before_id`. One process at a time; what another one holds is passed. Nothing if a restored database is
-- being compared with its chain. It plans each statement once: otherwise the check of every foreign key of every row
-- would be planned anew, which takes longer than all the rest.
create function delete_over(after_id text, before_id text, days integer, batch integer)
  returns table (looked integer, deleted integer, last_id text) language plpgsql security definer
  set search_path = public, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set enable_material = off set plan_cache_mode = force_generic_plan as $$
declare
  ended_before constant timestamptz := clock() - make_interval(days => greatest(days, 90));
  ids text[];
  each record;
begin
  if exists (select 1 from restores where finished_at is null) or not pg_try_advisory_xact_lock(402402403, 42) then
    return;
  end if;
  -- Whoever changes anything about a checkout holds its row.
  ids := array(select c.id from checkouts c where c.id > after_id and c.id < before_id
    and c.status in ('COMPLETED', 'EXPIRED', 'CANCELED') order by c.id limit batch for update skip locked);
  looked := cardinality(ids);
  last_id := ids[looked];
  -- Read after the rows are locked, so nothing here can change any more.
  ids := array(select list_over(ids, ended_before));
  deleted := cardinality(ids);
  if deleted > 0 then
    delete from payment_hints where checkout_id = any(ids);
    delete from pasted_transactions where checkout_id = any(ids);
    delete from reserved_amounts where checkout_id = any(ids);
    -- What the chain took back for good is not money that came: should it come after all, it counts as new.
    with gone as (delete from credits where checkout_id = any(ids) returning *),
      notes as (delete from payment_notes where payment_id in (select payment_id from gone))
      insert into kept_credits (key, payment_id, outcome)
      select x.key, g.payment_id, case when g.disposition = 'exact' then 'exact'
        when g.accepted_at is not null then 'accepted' else 'dismissed' end
      from gone g cross join lateral (values
        (credit_key(g.network, g.transaction_hash, g.asset, g.payer, g.pay_to, g.amount, g.position)),
        (nonce_key(g.network, g.asset, g.payer, g.nonce))) as x (key)
      where g.orphaned_at is null and x.key is not null on conflict do nothing;
    -- A settler's transaction goes with the last of the payments that it carried. One that carried a refund stays.
    for each in
      with gone as (
        delete from authorizations where checkout_id = any(ids) and state in ('claimed', 'sent') returning *
      ), ended as (
        delete from authorizations where checkout_id = any(ids) and state in ('rejected', 'dead') returning *
      )
      select distinct s.network, s.settler, s.settler_nonce as nonce from (select * from gone union all select * from ended) a
      join transaction_calls s on s.nonce = a.nonce and s.payer = a.payer and s.asset = a.asset and s.network = a.network
    loop
      continue when exists (select 1 from transaction_calls s join authorizations a on a.payer = s.payer
        and a.nonce = s.nonce and a.asset = s.asset and a.network = s.network
        where s.settler = each.settler and s.settler_nonce = each.nonce and s.network = each.network);
      delete from transaction_calls where settler = each.settler and settler_nonce = each.nonce and network = each.network;
      delete from broadcasts where network = each.network and settler = each.settler and nonce = each.nonce;
      delete from transactions where network = each.network and settler = each.settler and nonce = each.nonce;
    end loop;
    with gone as (delete from events where checkout_id = any(ids) returning store_id, sequence)
      insert into truncated_logs as l (store_id, last_sequence)
      select store_id, max(sequence) from gone group by store_id order by store_id
      on conflict (store_id) do update set last_sequence = excluded.last_sequence
        where l.last_sequence < excluded.last_sequence;
    delete from checkouts where id = any(ids);
  end if;
  return next;
end $$;
revoke execute on function delete_over from public;
