CREATE FUNCTION public.acting_role(of_session text, in_store text) RETURNS text
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
  select m.role from memberships m join sessions s on s.member_id = m.member_id
  where m.store_id = in_store and s.id = of_session for share of m for key share of s
$$;

CREATE FUNCTION public.clock() RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
  select now() + coalesce(nullif(current_setting('farthing.clock_offset', true), ''), '0')::interval
$$;

CREATE FUNCTION public.close_movements(of_store text, before timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  if exists (select 1 from movement_closings c where c.store_id = of_store and c.until >= before) then return true; end if;
  if before > wall_clock() then return false; end if;
  perform 1 from event_counters c where c.store_id = of_store for share;
  insert into movement_closings as c (store_id, until) select s.id, before from stores s where s.id = of_store
  on conflict (store_id) do update set until = excluded.until where c.until < excluded.until;
  return true;
end $$;

CREATE FUNCTION public.credit_key(network text, transaction_hash text, asset text, payer text, pay_to text, amount numeric, "position" integer) RETURNS bytea
    LANGUAGE sql IMMUTABLE
    AS $$
  select sha256(convert_to(concat_ws(' ', 'transfer', network, transaction_hash, asset, payer, pay_to, amount::text,
    "position"::text), 'UTF8'))
$$;

CREATE FUNCTION public.delete_links_over(days integer, batch integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
declare
  ended_before constant timestamptz := clock() - make_interval(days => greatest(days, 90));
  ids text[];
begin
  if exists (select 1 from restores where finished_at is null) or not pg_try_advisory_xact_lock(402402403, 50) then
    return 0;
  end if;
  ids := array(select l.id from links l where l.until < ended_before
      and not exists (select 1 from checkouts c where c.link_id = l.id)
      and not exists (select 1 from events e left join rollup_cursors u on u.store_id = e.store_id
        where e.id = any(l.event_ids) and (e.sequence is null or e.created_at >= ended_before
          or e.sequence > coalesce(u.sequence, 0)
          or exists (select 1 from webhook_endpoints w join deliveries d on d.endpoint_id = w.id and d.event_id = e.id
            where w.store_id = e.store_id)))
    order by l.until limit batch for update skip locked);
  with gone as (
    delete from events where id in (select unnest(l.event_ids) from links l where l.id = any(ids))
    returning store_id, sequence
  )
  insert into truncated_logs as t (store_id, last_sequence)
  select store_id, max(sequence) from gone group by store_id order by store_id
  on conflict (store_id) do update set last_sequence = excluded.last_sequence
    where t.last_sequence < excluded.last_sequence;
  delete from links where id = any(ids);
  return cardinality(ids);
end $$;

CREATE FUNCTION public.delete_over(after_id text, before_id text, days integer, batch integer) RETURNS TABLE(looked integer, deleted integer, last_id text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_material TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.follow_credit() RETURNS trigger
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  update authorizations a set is_credited = not a.is_credited
  where a.network = new.network and a.asset = new.asset and a.payer = new.payer and a.nonce = new.nonce
    and a.is_credited <> exists (select 1 from credits k where k.network = a.network and k.asset = a.asset
      and k.payer = a.payer and k.nonce = a.nonce and k.orphaned_at is null
      and k.checkout_id is not distinct from a.checkout_id
      and (a.refund_id is null or (k.pay_to = a.pay_to and k.amount = a.amount)));
  return null;
end $$;

CREATE FUNCTION public.guard_change() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  if new.made is not null and pg_has_role('farthing_serve', 'usage') and not pg_has_role('farthing_console', 'usage')
    and needs_owner(new.store_id)
  then
    raise insufficient_privilege
      using message = format('%s may not make a change of wallet in %s: an owner confirms that', current_user, new.store_id);
  end if;
  return new;
end $$;

CREATE FUNCTION public.guard_expiry() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  if (new.expires_at > old.expires_at or not is_test_store(new.store_id))
    and (pg_has_role('farthing_serve', 'usage') or pg_has_role('farthing_console', 'usage'))
    and not pg_has_role('farthing_work', 'usage')
  then
    raise insufficient_privilege using message = format('%s may not move when a checkout expires', current_user);
  end if;
  return new;
end $$;

CREATE FUNCTION public.guard_refund() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
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

CREATE FUNCTION public.guard_simulated() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  perform refuse_unless_test((new.store_id is null or is_test_store(new.store_id))
    and (new.pay_to not like 'sim\_st\_%' or is_test_store(substr(new.pay_to, 5))));
  return new;
end $$;

CREATE FUNCTION public.guard_simulated_amount() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  perform refuse_unless_test((select is_test_store(c.store_id) from checkouts c where c.id = new.checkout_id));
  return new;
end $$;

CREATE FUNCTION public.guard_simulated_checkout() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  perform refuse_unless_test(is_test_store(new.store_id));
  return new;
end $$;

CREATE FUNCTION public.guard_status() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  if new.status <> old.status and not (old.status = 'OPEN' and new.status in ('PROCESSING', 'CANCELED'))
    and (pg_has_role('farthing_serve', 'usage') or pg_has_role('farthing_console', 'usage'))
    and not pg_has_role('farthing_work', 'usage')
  then
    raise insufficient_privilege
      using message = format('%s may not move a checkout from %s to %s', current_user, old.status, new.status);
  end if;
  return new;
end $$;

CREATE FUNCTION public.guard_wallet() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  if (case when tg_op = 'INSERT' then new.registration > 0
        else new.registration <> old.registration or (old.retired_at is not null and new.retired_at is null) end)
    and pg_has_role('farthing_serve', 'usage') and not pg_has_role('farthing_console', 'usage')
    and needs_owner(new.store_id)
  then
    raise insufficient_privilege
      using message = format('%s may not put a wallet of %s to use: an owner confirms that', current_user, new.store_id);
  end if;
  return new;
end $$;

CREATE FUNCTION public.is_test_store(of_store text) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'public', 'pg_temp'
    AS $$
  select exists (select 1 from stores s where s.id = of_store and s.mode = 'test')
$$;

CREATE FUNCTION public.keep_mode() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  raise exception 'a store stays what it is: live or test' using errcode = 'check_violation';
end $$;

CREATE FUNCTION public.keep_terms() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  if old.nonce is not null and old.recipient is distinct from new.recipient then
    raise insufficient_privilege using message = format('%s was handed out to be signed: its recipient stays', old.id);
  end if;
  return new;
end $$;

CREATE FUNCTION public.link_is_over(link text, ended_before timestamp with time zone) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'public', 'pg_temp'
    AS $$
  select not exists (select 1 from links l where l.id = link and l.until >= ended_before)
    and not exists (select 1 from checkouts c where c.link_id = link and c.status in ('OPEN', 'PROCESSING'))
$$;

CREATE FUNCTION public.list_ended(ids text[], ended_before timestamp with time zone) RETURNS SETOF text
    LANGUAGE sql STABLE
    SET search_path TO 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_material TO 'off'
    AS $$
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

CREATE FUNCTION public.list_over(ids text[], ended_before timestamp with time zone) RETURNS SETOF text
    LANGUAGE sql STABLE
    SET search_path TO 'public', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_material TO 'off'
    AS $$
  select e.id from list_ended(ids, ended_before) as e (id)
  cross join lateral (select * from checkouts c where c.id = e.id offset 0) c
  where c.link_id is null or link_is_over(c.link_id, ended_before)
  order by e.id
$$;

CREATE FUNCTION public.needs_owner(of_store text) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'public', 'pg_temp'
    AS $$
  select coalesce(s.wallet_changes, case when s.mode = 'live' and exists (select 1 from memberships m
    where m.store_id = s.id and m.role = 'owner') then 'member' else 'key' end) = 'member'
  from stores s where s.id = of_store
$$;

CREATE FUNCTION public.nonce_key(network text, asset text, payer text, nonce text) RETURNS bytea
    LANGUAGE sql IMMUTABLE
    AS $$
  select case when nonce is not null
    then sha256(convert_to(concat_ws(' ', 'nonce', network, asset, payer, nonce), 'UTF8')) end
$$;

CREATE FUNCTION public.note_accept() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  -- A decision that names no checkout is about the one that the payment has then.
  insert into audit_accepts (payment_id, checkout_id, store_id)
  select new.payment_id, for_checkout, new.store_id
  from coalesce(new.checkout_id, (select k.checkout_id from credits k where k.payment_id = new.payment_id
    order by k.orphaned_at desc nulls first limit 1)) as for_checkout
  where for_checkout is not null on conflict do nothing;
  return null;
end $$;

CREATE FUNCTION public.note_credit() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  insert into audit_changes as c (network, wallet, day, changes)
  select distinct k.network, k.wallet, (k.at at time zone 'UTC')::date, 1
  from (values (old.network, old.pay_to, old.block_time), (new.network, new.pay_to, new.block_time))
    as k (network, wallet, at) where k.network <> 'farthing:simulated' order by 1, 2, 3
  on conflict (network, wallet, day) do update set changes = c.changes + 1;
  return null;
end $$;

CREATE FUNCTION public.note_credits() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  insert into audit_changes as c (network, wallet, day, changes)
  select distinct k.network, k.pay_to, (k.block_time at time zone 'UTC')::date, 1 from new_credits k
  where k.network <> 'farthing:simulated' order by 1, 2, 3
  on conflict (network, wallet, day) do update set changes = c.changes + 1;
  return null;
end $$;

CREATE FUNCTION public.payment_owners(paid_to text, paid_at timestamp with time zone, in_mode text) RETURNS TABLE(store_id text, may_decide boolean)
    LANGUAGE sql STABLE
    AS $$
  with ranked as (
    select w.store_id, case when w.retired_at <= w.released_at and w.released_at <= paid_at then 4
      when w.proven_at is not null then 1
      when w.retired_at is null or w.retired_at > paid_at then 2 else 3 end as rank
    from wallets w join stores s on s.id = w.store_id and s.mode = in_mode
    where w.pay_to = paid_to and not w.unowned
      and (w.proven_at is not null or w.created_at <= paid_at and w.registration > 0)
  ), first as (
    select distinct r.store_id, r.rank from ranked r where r.rank = (select min(rank) from ranked)
  )
  select f.store_id, f.rank = 1 or (f.rank < 4 and (select count(*) from first) = 1) from first f
  union all
  select s.id, true from stores s where paid_to like 'sim\_%' and s.id = substr(paid_to, 5) and s.mode = 'test' and in_mode = 'test'
$$;

CREATE FUNCTION public.payment_right(of_store text, paid_to text, paid_at timestamp with time zone, in_mode text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
  select o.may_decide from payment_owners(paid_to, paid_at, in_mode) o where o.store_id = of_store
$$;

CREATE FUNCTION public.queue_movement() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  insert into movements_due (item, turn) values (new.payment_id, coalesce(new.store_id, new.pay_to));
  return null;
end $$;

CREATE FUNCTION public.refuse_unless_test(is_test boolean) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  if not coalesce(is_test, false) then
    raise exception 'the simulated network is for test stores only' using errcode = 'check_violation';
  end if;
end $$;

CREATE FUNCTION public.wall_clock() RETURNS timestamp with time zone
    LANGUAGE sql
    AS $$
  select clock_timestamp() + coalesce(nullif(current_setting('farthing.clock_offset', true), ''), '0')::interval
$$;

CREATE FUNCTION public.watch_refund() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'pg_temp'
    AS $$
begin
  update refunds set is_watched = true where nonce = new.nonce and network = new.network and asset = new.asset
    and wallet = new.payer and status not in ('FAILED', 'CANCELED');
  return null;
end $$;

CREATE TABLE public.address_requests (
    refund_id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    token_hash bytea NOT NULL,
    actor json NOT NULL,
    made_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    address text COLLATE pg_catalog."C",
    browser_hash bytea,
    code text COLLATE pg_catalog."C",
    named_at timestamp with time zone,
    confirmed_at timestamp with time zone,
    confirmed_by json,
    CONSTRAINT address_requests_browser_hash_check CHECK ((octet_length(browser_hash) = 32)),
    CONSTRAINT address_requests_check CHECK ((num_nulls(address, browser_hash, code, named_at) = ANY (ARRAY[0, 4]))),
    CONSTRAINT address_requests_check1 CHECK (((confirmed_at IS NULL) OR (named_at IS NOT NULL))),
    CONSTRAINT address_requests_check2 CHECK (((confirmed_at IS NULL) = (confirmed_by IS NULL))),
    CONSTRAINT address_requests_token_hash_check CHECK ((octet_length(token_hash) = 32))
);

CREATE TABLE public.alert_cursors (
    store_id text NOT NULL COLLATE pg_catalog."C",
    sequence bigint NOT NULL,
    failing_until timestamp with time zone NOT NULL,
    told_at timestamp with time zone
);

CREATE TABLE public.api_keys (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    secret_hash bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    label text,
    scopes text[],
    addresses text[] DEFAULT '{}'::text[] NOT NULL,
    last_used_at timestamp with time zone,
    CONSTRAINT api_keys_secret_hash_check CHECK ((octet_length(secret_hash) = 32))
);

CREATE TABLE public.audit_accepts (
    payment_id text NOT NULL COLLATE pg_catalog."C",
    checkout_id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.audit_changes (
    network text NOT NULL COLLATE pg_catalog."C",
    wallet text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    changes bigint NOT NULL,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.audit_days (
    network text NOT NULL COLLATE pg_catalog."C",
    wallet text NOT NULL COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    received numeric(78,0),
    sent numeric(78,0),
    balance numeric(78,0),
    credits integer NOT NULL,
    credited numeric NOT NULL,
    checked_at timestamp with time zone NOT NULL
);

CREATE TABLE public.audit_explanations (
    finding_id bigint NOT NULL,
    store_id text NOT NULL COLLATE pg_catalog."C",
    amount numeric(78,0) NOT NULL,
    note text NOT NULL,
    actor json NOT NULL,
    explained_at timestamp with time zone NOT NULL,
    CONSTRAINT audit_explanations_note_check CHECK (((octet_length(note) >= 1) AND (octet_length(note) <= 1000)))
);

CREATE TABLE public.audit_findings (
    id bigint NOT NULL,
    kind text NOT NULL,
    network text NOT NULL COLLATE pg_catalog."C",
    wallet text NOT NULL COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    transaction_hash text NOT NULL COLLATE pg_catalog."C",
    "position" integer NOT NULL,
    amount numeric(78,0) NOT NULL,
    checkout_id text COLLATE pg_catalog."C",
    store_id text COLLATE pg_catalog."C",
    found_at timestamp with time zone NOT NULL,
    resolved_at timestamp with time zone,
    CONSTRAINT audit_findings_kind_check CHECK ((kind = ANY (ARRAY['missing'::text, 'dust'::text, 'sibling'::text, 'elsewhere'::text, 'unfounded'::text, 'unpaid'::text, 'balance'::text, 'busy'::text])))
);

ALTER TABLE public.audit_findings ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_findings_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.audit_runs (
    network text NOT NULL COLLATE pg_catalog."C",
    ran_at timestamp with time zone NOT NULL,
    calls bigint NOT NULL,
    trouble text,
    trouble_since timestamp with time zone
);

CREATE TABLE public.authorizations (
    network text NOT NULL COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    payer text NOT NULL COLLATE pg_catalog."C",
    nonce text NOT NULL COLLATE pg_catalog."C",
    checkout_id text COLLATE pg_catalog."C",
    store_id text COLLATE pg_catalog."C",
    state text NOT NULL,
    pay_to text NOT NULL COLLATE pg_catalog."C",
    amount numeric(78,0) NOT NULL,
    valid_after numeric(78,0) NOT NULL,
    valid_before numeric(78,0) NOT NULL,
    signature bytea NOT NULL,
    reason text,
    claimed_at timestamp with time zone NOT NULL,
    sends integer DEFAULT 0 NOT NULL,
    is_contract boolean DEFAULT false NOT NULL,
    spent_block_number bigint,
    spent_block_hash text COLLATE pg_catalog."C",
    spent_reason text,
    payment_identifier text COLLATE pg_catalog."C",
    resolved_at timestamp with time zone,
    is_credited boolean DEFAULT false NOT NULL,
    settler text COLLATE pg_catalog."C",
    failed_at timestamp with time zone,
    refund_id text COLLATE pg_catalog."C",
    CONSTRAINT authorizations_amount_check CHECK ((amount > (0)::numeric)),
    CONSTRAINT authorizations_check CHECK (((checkout_id IS NULL) OR (store_id IS NOT NULL))),
    CONSTRAINT authorizations_prepared_check CHECK (((state <> 'prepared'::text) OR (refund_id IS NOT NULL))),
    CONSTRAINT authorizations_state_check CHECK ((state = ANY (ARRAY['prepared'::text, 'claimed'::text, 'sent'::text, 'rejected'::text, 'dead'::text])))
)
WITH (fillfactor='50');

CREATE TABLE public.blocks (
    network text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    hash text NOT NULL COLLATE pg_catalog."C",
    parent_hash text NOT NULL COLLATE pg_catalog."C",
    block_time timestamp with time zone NOT NULL,
    told_by text[] DEFAULT '{}'::text[] NOT NULL,
    is_found boolean DEFAULT true NOT NULL
);

CREATE TABLE public.broadcasts (
    hash text NOT NULL COLLATE pg_catalog."C",
    network text NOT NULL COLLATE pg_catalog."C",
    settler text NOT NULL COLLATE pg_catalog."C",
    nonce bigint NOT NULL,
    bytes bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    first_sent_at timestamp with time zone,
    last_sent_at timestamp with time zone,
    taken_at timestamp with time zone,
    unfunded_at timestamp with time zone,
    refusal text
);

CREATE TABLE public.buyer_receipt_counters (
    store_id text NOT NULL COLLATE pg_catalog."C",
    series text NOT NULL COLLATE pg_catalog."C",
    year integer NOT NULL,
    last_number integer NOT NULL
);

CREATE TABLE public.buyer_receipts (
    store_id text NOT NULL COLLATE pg_catalog."C",
    series text NOT NULL COLLATE pg_catalog."C",
    year integer NOT NULL,
    number integer NOT NULL,
    checkout_id text NOT NULL COLLATE pg_catalog."C",
    payment_id text NOT NULL COLLATE pg_catalog."C",
    store_name text NOT NULL,
    legal_name text,
    legal_address text,
    tax_id text,
    price_amount text NOT NULL,
    price_currency text NOT NULL,
    network text NOT NULL,
    asset text NOT NULL,
    amount numeric NOT NULL,
    issued_on date NOT NULL,
    issued_at timestamp with time zone NOT NULL,
    void_at timestamp with time zone,
    mailed smallint DEFAULT 0 NOT NULL
);

CREATE TABLE public.cell (
    only_row boolean DEFAULT true NOT NULL,
    tag text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT cell_only_row_check CHECK (only_row),
    CONSTRAINT cell_tag_check CHECK ((tag ~ '^[0-9a-z]{2}$'::text))
);

CREATE TABLE public.challenges (
    hash bytea NOT NULL,
    purpose text NOT NULL,
    browser_hash bytea NOT NULL,
    subject_hash bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT challenges_browser_hash_check CHECK ((octet_length(browser_hash) = 32)),
    CONSTRAINT challenges_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT challenges_purpose_check CHECK ((purpose = ANY (ARRAY['sign_in'::text, 'sign_up'::text, 'enrol'::text, 'add_passkey'::text, 'confirm'::text, 'oidc'::text, 'recover'::text]))),
    CONSTRAINT challenges_subject_hash_check CHECK ((octet_length(subject_hash) = 32))
);

CREATE TABLE public.checkouts (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    order_id text NOT NULL COLLATE pg_catalog."C",
    price_amount text NOT NULL,
    price_currency text NOT NULL,
    success_redirect_url text,
    options json NOT NULL,
    rate json,
    finality text NOT NULL,
    status text NOT NULL,
    version integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    page_version integer DEFAULT 0 NOT NULL,
    cancel_url text,
    description text,
    metadata json,
    link_id text COLLATE pg_catalog."C",
    opened_by bytea,
    CONSTRAINT checkouts_check CHECK ((expires_at > created_at)),
    CONSTRAINT checkouts_finality_check CHECK ((finality = ANY (ARRAY['included'::text, 'safe'::text, 'finalized'::text]))),
    CONSTRAINT checkouts_order_id_check CHECK (((octet_length(order_id) >= 1) AND (octet_length(order_id) <= 255))),
    CONSTRAINT checkouts_price_currency_check CHECK ((price_currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT checkouts_status_check CHECK ((status = ANY (ARRAY['OPEN'::text, 'PROCESSING'::text, 'COMPLETED'::text, 'EXPIRED'::text, 'CANCELED'::text]))),
    CONSTRAINT checkouts_version_check CHECK ((version >= 1))
);

CREATE TABLE public.credits (
    network text NOT NULL COLLATE pg_catalog."C",
    block_hash text NOT NULL COLLATE pg_catalog."C",
    log_index integer NOT NULL,
    payment_id text NOT NULL COLLATE pg_catalog."C",
    block_number bigint NOT NULL,
    block_time timestamp with time zone NOT NULL,
    transaction_hash text NOT NULL COLLATE pg_catalog."C",
    "position" integer NOT NULL,
    asset text NOT NULL COLLATE pg_catalog."C",
    payer text NOT NULL COLLATE pg_catalog."C",
    nonce text COLLATE pg_catalog."C",
    pay_to text NOT NULL COLLATE pg_catalog."C",
    amount numeric(78,0) NOT NULL,
    store_id text COLLATE pg_catalog."C",
    checkout_id text COLLATE pg_catalog."C",
    disposition text NOT NULL,
    first_seen_block_time timestamp with time zone NOT NULL,
    included_at timestamp with time zone NOT NULL,
    safe_at timestamp with time zone,
    finalized_at timestamp with time zone,
    reversed_at timestamp with time zone,
    orphaned_at timestamp with time zone,
    announced text,
    accepted_at timestamp with time zone,
    dismissed_at timestamp with time zone,
    sender text COLLATE pg_catalog."C",
    sender_nonce bigint,
    witnessed_at timestamp with time zone,
    counts boolean DEFAULT true NOT NULL,
    CONSTRAINT credits_amount_check CHECK ((amount > (0)::numeric)),
    CONSTRAINT credits_amount_is_number CHECK ((amount <> 'NaN'::numeric)),
    CONSTRAINT credits_check CHECK (((disposition = 'unmatched'::text) OR (checkout_id IS NOT NULL))),
    CONSTRAINT credits_disposition_check CHECK ((disposition = ANY (ARRAY['exact'::text, 'late'::text, 'underpaid'::text, 'overpaid'::text, 'unmatched'::text]))),
    CONSTRAINT credits_length_check CHECK (((octet_length(network) <= 100) AND (octet_length(transaction_hash) <= 200) AND (octet_length(asset) <= 100) AND (octet_length(payer) <= 100) AND (octet_length(pay_to) <= 100) AND (octet_length(checkout_id) <= 100))),
    CONSTRAINT credits_position_check CHECK (("position" >= 0)),
    CONSTRAINT credits_time_check CHECK (((block_time >= '2009-01-01 00:00:00+00'::timestamp with time zone) AND (block_time < '2200-01-01 00:00:00+00'::timestamp with time zone)))
)
WITH (fillfactor='50');

CREATE TABLE public.decisions (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    payment_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    checkout_id text COLLATE pg_catalog."C",
    actor json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    decided_at timestamp with time zone,
    outcome json,
    note text,
    due_at timestamp with time zone,
    together text COLLATE pg_catalog."C",
    session_id text COLLATE pg_catalog."C",
    CONSTRAINT decisions_check CHECK (((decided_at IS NULL) = (outcome IS NULL))),
    CONSTRAINT decisions_check1 CHECK (((kind = 'accept'::text) OR (checkout_id IS NULL))),
    CONSTRAINT decisions_held_check CHECK (((num_nulls(due_at, session_id) = ANY (ARRAY[0, 2])) AND ((due_at IS NULL) OR (together IS NOT NULL)))),
    CONSTRAINT decisions_kind_check CHECK ((kind = ANY (ARRAY['accept'::text, 'dismiss'::text, 'note'::text]))),
    CONSTRAINT decisions_note_check CHECK (((octet_length(note) >= 1) AND (octet_length(note) <= 1000)))
);

CREATE TABLE public.deliveries (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    endpoint_id text NOT NULL COLLATE pg_catalog."C",
    event_id text NOT NULL COLLATE pg_catalog."C",
    state text DEFAULT 'pending'::text NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    run_at timestamp with time zone NOT NULL,
    leased_until timestamp with time zone,
    sequence bigint NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    finished_at timestamp with time zone,
    is_security boolean DEFAULT false NOT NULL,
    CONSTRAINT deliveries_check CHECK (((state = 'pending'::text) = (finished_at IS NULL))),
    CONSTRAINT deliveries_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'undeliverable'::text])))
);

CREATE TABLE public.delivery_attempts (
    delivery_id text NOT NULL COLLATE pg_catalog."C",
    attempt integer NOT NULL,
    started_at timestamp with time zone NOT NULL,
    duration_ms integer,
    status integer,
    error text,
    answer text
);

CREATE TABLE public.deployment_mail_counts (
    kind text NOT NULL,
    day date NOT NULL,
    count integer NOT NULL
);

CREATE TABLE public.directory_state (
    only_one boolean DEFAULT true NOT NULL,
    generation bigint,
    identity text,
    fence bigint DEFAULT 0 NOT NULL,
    stamp bigint DEFAULT 0 NOT NULL,
    takes_stores boolean DEFAULT true NOT NULL,
    held boolean,
    next_stamp bigint,
    CONSTRAINT directory_state_check CHECK (((generation IS NULL) OR (identity IS NOT NULL))),
    CONSTRAINT directory_state_only_one_check CHECK (only_one)
);

CREATE TABLE public.email_changes (
    member_id text NOT NULL COLLATE pg_catalog."C",
    token_hash bytea,
    email text,
    expires_at timestamp with time zone NOT NULL,
    day date NOT NULL,
    links integer NOT NULL,
    CONSTRAINT email_changes_check CHECK (((token_hash IS NULL) = (email IS NULL))),
    CONSTRAINT email_changes_links_check CHECK ((links > 0)),
    CONSTRAINT email_changes_token_hash_check CHECK ((octet_length(token_hash) = 32))
);

CREATE TABLE public.event_bytes (
    store_id text NOT NULL COLLATE pg_catalog."C",
    slot integer NOT NULL,
    hour timestamp with time zone NOT NULL,
    bytes bigint NOT NULL,
    CONSTRAINT event_bytes_bytes_check CHECK ((bytes > 0))
);

CREATE TABLE public.event_counters (
    store_id text NOT NULL COLLATE pg_catalog."C",
    last_sequence bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.event_log (
    only_row boolean DEFAULT true NOT NULL,
    epoch integer DEFAULT 1 NOT NULL,
    receipt_series text DEFAULT ''::text NOT NULL,
    CONSTRAINT event_log_only_row_check CHECK (only_row)
);

CREATE TABLE public.events (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    "position" bigint NOT NULL,
    sequence bigint,
    type text NOT NULL,
    checkout_id text COLLATE pg_catalog."C",
    checkout_version integer,
    data json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    actor json,
    CONSTRAINT events_check CHECK (((checkout_id IS NULL) = (checkout_version IS NULL)))
);

ALTER TABLE public.events ALTER COLUMN "position" ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.events_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.followers (
    network text NOT NULL COLLATE pg_catalog."C",
    lease_holder text,
    leased_until timestamp with time zone,
    head_number bigint DEFAULT 0 NOT NULL,
    head_time timestamp with time zone,
    base_fee numeric(78,0),
    head_seen_at timestamp with time zone,
    safe_number bigint DEFAULT 0 NOT NULL,
    finalized_number bigint DEFAULT 0 NOT NULL,
    witnesses integer,
    dispute text,
    disputed_at timestamp with time zone,
    block_time_ms integer,
    settled_number bigint DEFAULT 0 NOT NULL,
    is_behind boolean DEFAULT false NOT NULL,
    CONSTRAINT followers_block_time_ms_check CHECK ((block_time_ms >= 0))
);

CREATE TABLE public.foreign_nonces (
    network text NOT NULL COLLATE pg_catalog."C",
    settler text NOT NULL COLLATE pg_catalog."C",
    nonce bigint NOT NULL,
    found_at timestamp with time zone NOT NULL,
    CONSTRAINT foreign_nonces_nonce_check CHECK ((nonce >= 0))
);

CREATE TABLE public.granted_rights (
    only_row boolean DEFAULT true NOT NULL,
    sql text NOT NULL,
    CONSTRAINT granted_rights_only_row_check CHECK (only_row)
);

CREATE TABLE public.idempotency_keys (
    store_id text NOT NULL COLLATE pg_catalog."C",
    route text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    body_hash bytea NOT NULL,
    resource_id text NOT NULL COLLATE pg_catalog."C",
    answer text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT idempotency_keys_body_hash_check CHECK ((octet_length(body_hash) = 32)),
    CONSTRAINT idempotency_keys_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 255)))
);

CREATE TABLE public.identities (
    issuer text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    member_id text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.invitations (
    id text NOT NULL COLLATE pg_catalog."C",
    token_hash bytea NOT NULL,
    store_id text NOT NULL COLLATE pg_catalog."C",
    member_id text NOT NULL COLLATE pg_catalog."C",
    is_recovery boolean NOT NULL,
    name text NOT NULL,
    email text,
    role text NOT NULL,
    invited_by text COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT invitations_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'manager'::text, 'developer'::text, 'viewer'::text]))),
    CONSTRAINT invitations_token_hash_check CHECK ((octet_length(token_hash) = 32))
);

CREATE TABLE public.kept_credits (
    key bytea NOT NULL,
    payment_id text NOT NULL COLLATE pg_catalog."C",
    outcome text NOT NULL,
    CONSTRAINT kept_credits_outcome_check CHECK ((outcome = ANY (ARRAY['exact'::text, 'accepted'::text, 'dismissed'::text])))
);

CREATE TABLE public.links (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    title text NOT NULL,
    description text,
    price_amount text,
    min_amount text,
    max_amount text,
    price_currency text NOT NULL,
    invoice json,
    invoice_number text,
    metadata json,
    until timestamp with time zone NOT NULL,
    closed_at timestamp with time zone,
    paid_at timestamp with time zone,
    checkout_id text COLLATE pg_catalog."C",
    made integer DEFAULT 0 NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    quote_key bytea NOT NULL,
    actor json NOT NULL,
    idempotency_key text,
    body_hash bytea,
    event_ids text[] DEFAULT '{}'::text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT links_check CHECK (
CASE
    WHEN (price_amount IS NULL) THEN ((min_amount IS NOT NULL) AND (max_amount IS NOT NULL))
    ELSE ((min_amount IS NULL) AND (max_amount IS NULL))
END),
    CONSTRAINT links_check1 CHECK ((((invoice IS NULL) = (invoice_number IS NULL)) AND ((invoice IS NULL) OR (kind = 'once'::text)))),
    CONSTRAINT links_check2 CHECK (((kind = 'once'::text) OR ((paid_at IS NULL) AND (checkout_id IS NULL)))),
    CONSTRAINT links_kind_check CHECK ((kind = ANY (ARRAY['once'::text, 'many'::text]))),
    CONSTRAINT links_price_currency_check CHECK ((price_currency ~ '^[A-Z]{3}$'::text))
);

CREATE TABLE public.lookups (
    network text NOT NULL COLLATE pg_catalog."C",
    transaction_hash text NOT NULL COLLATE pg_catalog."C",
    asked_at timestamp with time zone NOT NULL,
    looked_at timestamp with time zone,
    outcome text NOT NULL,
    CONSTRAINT lookups_outcome_check CHECK ((outcome = ANY (ARRAY['looking'::text, 'found'::text, 'not_found'::text])))
);

CREATE TABLE public.mail_counts (
    store_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    count integer NOT NULL,
    CONSTRAINT mail_counts_count_check CHECK ((count > 0))
);

CREATE TABLE public.mail_recipients (
    recipient bytea NOT NULL,
    mailed_at timestamp with time zone NOT NULL,
    mails integer DEFAULT 1 NOT NULL
);

CREATE TABLE public.mails (
    id text NOT NULL COLLATE pg_catalog."C",
    about text NOT NULL,
    key_id text NOT NULL,
    sealed text NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT mails_tries_check CHECK ((tries >= 0))
);

CREATE TABLE public.member_mail_counts (
    member_id text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    count integer NOT NULL,
    CONSTRAINT member_mail_counts_count_check CHECK ((count > 0))
);

CREATE TABLE public.members (
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    email text,
    is_operator boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone NOT NULL,
    places bytea[] DEFAULT '{}'::bytea[] NOT NULL,
    email_confirmed_at timestamp with time zone
);

CREATE TABLE public.memberships (
    store_id text NOT NULL COLLATE pg_catalog."C",
    member_id text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    wallets_seen_at timestamp with time zone,
    muted_alerts text[] DEFAULT '{}'::text[] NOT NULL,
    payment_mails text,
    stop_token uuid DEFAULT gen_random_uuid() NOT NULL,
    CONSTRAINT memberships_payment_mails_check CHECK ((payment_mails = ANY (ARRAY['every'::text, 'daily'::text, 'none'::text]))),
    CONSTRAINT memberships_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'manager'::text, 'developer'::text, 'viewer'::text])))
);

CREATE TABLE public.movement_balances (
    store_id text NOT NULL COLLATE pg_catalog."C",
    wallet text NOT NULL COLLATE pg_catalog."C",
    network text NOT NULL COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    starts_at timestamp with time zone NOT NULL,
    received numeric NOT NULL,
    reversed numeric NOT NULL,
    refunded numeric NOT NULL
);

CREATE TABLE public.movement_closings (
    store_id text NOT NULL COLLATE pg_catalog."C",
    until timestamp with time zone NOT NULL
);

CREATE TABLE public.movement_quarters (
    store_id text NOT NULL COLLATE pg_catalog."C",
    starts_at timestamp with time zone NOT NULL,
    type text NOT NULL,
    network text NOT NULL COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    currency text NOT NULL,
    lines integer NOT NULL,
    amount numeric NOT NULL,
    value numeric NOT NULL,
    unvalued numeric NOT NULL
);

CREATE TABLE public.movements (
    store_id text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL,
    happened_at timestamp with time zone NOT NULL,
    booked_at timestamp with time zone NOT NULL,
    network text NOT NULL COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    amount numeric(78,0) NOT NULL,
    wallet text COLLATE pg_catalog."C",
    transaction_hash text COLLATE pg_catalog."C",
    place integer,
    payment_id text NOT NULL COLLATE pg_catalog."C",
    refund_id text COLLATE pg_catalog."C",
    checkout_id text COLLATE pg_catalog."C",
    order_id text,
    price_amount text,
    price_currency text,
    rate text,
    rate_source text,
    rate_time timestamp with time zone,
    reverses bigint,
    actor_type text,
    actor_id text,
    disposition text,
    value numeric,
    value_currency text NOT NULL,
    value_rate numeric,
    value_rate_source text,
    value_rate_time timestamp with time zone,
    CONSTRAINT movements_check CHECK (((wallet IS NULL) = (type = ANY (ARRAY['acceptance'::text, 'dismissal'::text, 'refund_declared'::text])))),
    CONSTRAINT movements_check1 CHECK (((reverses IS NULL) = (type <> ALL (ARRAY['payment_reversed'::text, 'payment_ceded'::text, 'refund_reversed'::text])))),
    CONSTRAINT movements_check2 CHECK (((value IS NULL) = (value_rate_source IS NULL))),
    CONSTRAINT movements_check3 CHECK (((amount = (0)::numeric) OR (type <> ALL (ARRAY['acceptance'::text, 'dismissal'::text])))),
    CONSTRAINT movements_number_check CHECK ((number > 0)),
    CONSTRAINT movements_type_check CHECK ((type = ANY (ARRAY['payment'::text, 'payment_reversed'::text, 'payment_ceded'::text, 'acceptance'::text, 'dismissal'::text, 'refund'::text, 'refund_reversed'::text, 'refund_declared'::text])))
);

CREATE TABLE public.movements_due (
    id bigint NOT NULL,
    item text NOT NULL COLLATE pg_catalog."C",
    turn text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    due_at timestamp with time zone DEFAULT public.clock() NOT NULL,
    tries integer DEFAULT 0 NOT NULL
);

ALTER TABLE public.movements_due ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.movements_due_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.network_looks (
    network text NOT NULL COLLATE pg_catalog."C",
    looked_at timestamp with time zone NOT NULL,
    awake_since timestamp with time zone NOT NULL
);

CREATE TABLE public.node_faults (
    network text NOT NULL COLLATE pg_catalog."C",
    provider text NOT NULL COLLATE pg_catalog."C",
    fault text NOT NULL,
    faults bigint NOT NULL,
    last_at timestamp with time zone NOT NULL
);

CREATE TABLE public.node_hours (
    network text NOT NULL COLLATE pg_catalog."C",
    provider text NOT NULL COLLATE pg_catalog."C",
    hour timestamp with time zone NOT NULL,
    answered bigint NOT NULL,
    failed bigint NOT NULL
);

CREATE TABLE public.node_limits (
    network text NOT NULL,
    provider text NOT NULL,
    calls jsonb NOT NULL,
    blocks_max integer,
    per_second double precision,
    found_at timestamp with time zone NOT NULL
);

CREATE TABLE public.passkeys (
    id text NOT NULL COLLATE pg_catalog."C",
    credential_id text NOT NULL COLLATE pg_catalog."C",
    member_id text NOT NULL COLLATE pg_catalog."C",
    public_key bytea NOT NULL,
    counter bigint NOT NULL,
    transports text[] DEFAULT '{}'::text[] NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone,
    waits_until timestamp with time zone,
    CONSTRAINT passkeys_counter_check CHECK ((counter >= 0))
);

CREATE TABLE public.pasted_transactions (
    checkout_id text NOT NULL COLLATE pg_catalog."C",
    network text NOT NULL COLLATE pg_catalog."C",
    transaction_hash text NOT NULL COLLATE pg_catalog."C",
    pasted_at timestamp with time zone NOT NULL,
    looked_at timestamp with time zone,
    outcome text DEFAULT 'looking'::text NOT NULL,
    CONSTRAINT pasted_transactions_outcome_check CHECK ((outcome = ANY (ARRAY['looking'::text, 'applied'::text, 'hinted'::text, 'not_found'::text])))
);

CREATE TABLE public.payment_hints (
    payment_id text NOT NULL COLLATE pg_catalog."C",
    checkout_id text NOT NULL COLLATE pg_catalog."C",
    disposition text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT payment_hints_disposition_check CHECK ((disposition = ANY (ARRAY['late'::text, 'underpaid'::text, 'overpaid'::text, 'unmatched'::text])))
);

CREATE TABLE public.payment_mail_cursors (
    store_id text NOT NULL COLLATE pg_catalog."C",
    member_id text NOT NULL COLLATE pg_catalog."C",
    sequence bigint,
    daily_at timestamp with time zone NOT NULL,
    quiet_until timestamp with time zone
);

CREATE TABLE public.payment_notes (
    payment_id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    note text NOT NULL,
    actor json NOT NULL,
    noted_at timestamp with time zone NOT NULL,
    CONSTRAINT payment_notes_note_check CHECK (((octet_length(note) >= 1) AND (octet_length(note) <= 1000)))
);

CREATE TABLE public.rates (
    source text NOT NULL COLLATE pg_catalog."C",
    currency text NOT NULL COLLATE pg_catalog."C",
    per_base numeric NOT NULL,
    as_of timestamp with time zone NOT NULL,
    CONSTRAINT rates_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT rates_per_base_check CHECK ((per_base > (0)::numeric))
);

CREATE TABLE public.recovery_codes (
    hash bytea NOT NULL,
    member_id text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT recovery_codes_hash_check CHECK ((octet_length(hash) = 32))
);

CREATE TABLE public.refund_totals (
    network text NOT NULL COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    identity text NOT NULL COLLATE pg_catalog."C",
    payment_id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    amount numeric(78,0) NOT NULL,
    reserved numeric(78,0) NOT NULL,
    CONSTRAINT refund_totals_amount_check CHECK ((amount > (0)::numeric)),
    CONSTRAINT refund_totals_within_payment CHECK (((reserved >= (0)::numeric) AND (reserved <= amount)))
);

CREATE TABLE public.refunds (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    payment_id text NOT NULL COLLATE pg_catalog."C",
    checkout_id text COLLATE pg_catalog."C",
    network text NOT NULL COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    identity text NOT NULL COLLATE pg_catalog."C",
    wallet text NOT NULL COLLATE pg_catalog."C",
    amount numeric(78,0) NOT NULL,
    recipient text COLLATE pg_catalog."C",
    way text NOT NULL,
    reason text,
    status text NOT NULL,
    version integer NOT NULL,
    actor json NOT NULL,
    idempotency_key text COLLATE pg_catalog."C",
    body_hash text COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    slot smallint,
    nonce text COLLATE pg_catalog."C",
    signed_at timestamp with time zone,
    cancel_asked_at timestamp with time zone,
    transaction_hash text COLLATE pg_catalog."C",
    "position" integer,
    finality text,
    declared text,
    failure text,
    completed_at timestamp with time zone,
    ended_at timestamp with time zone,
    is_watched boolean DEFAULT false NOT NULL,
    named_at timestamp with time zone,
    looked_at timestamp with time zone,
    said_by json,
    sent_from text COLLATE pg_catalog."C",
    sent_at timestamp with time zone,
    CONSTRAINT refunds_amount_check CHECK ((amount > (0)::numeric)),
    CONSTRAINT refunds_check CHECK (((slot IS NULL) = (nonce IS NULL))),
    CONSTRAINT refunds_check1 CHECK (((idempotency_key IS NULL) = (body_hash IS NULL))),
    CONSTRAINT refunds_check2 CHECK (((ended_at IS NOT NULL) = (status = ANY (ARRAY['FAILED'::text, 'CANCELED'::text])))),
    CONSTRAINT refunds_declared_check CHECK (((octet_length(declared) >= 1) AND (octet_length(declared) <= 500))),
    CONSTRAINT refunds_finality_check CHECK ((finality = ANY (ARRAY['included'::text, 'safe'::text, 'finalized'::text]))),
    CONSTRAINT refunds_position_check CHECK (("position" >= 0)),
    CONSTRAINT refunds_reason_check CHECK (((octet_length(reason) >= 1) AND (octet_length(reason) <= 500))),
    CONSTRAINT refunds_slot_check CHECK (((slot >= 0) AND (slot <= 4))),
    CONSTRAINT refunds_status_check CHECK ((status = ANY (ARRAY['REQUESTED'::text, 'SIGNED'::text, 'SENT'::text, 'COMPLETED'::text, 'DECLARED'::text, 'FAILED'::text, 'CANCELED'::text]))),
    CONSTRAINT refunds_version_check CHECK ((version >= 1)),
    CONSTRAINT refunds_way_check CHECK ((way = ANY (ARRAY['signed'::text, 'self-sent'::text])))
)
WITH (fillfactor='80');

CREATE TABLE public.report_mappings (
    store_id text NOT NULL COLLATE pg_catalog."C",
    place smallint NOT NULL,
    name text NOT NULL,
    delimiter text NOT NULL,
    "decimal" text NOT NULL,
    dates text NOT NULL,
    has_mark boolean NOT NULL,
    columns jsonb NOT NULL,
    CONSTRAINT report_mappings_place_check CHECK (((place >= 1) AND (place <= 10)))
);

CREATE TABLE public.reserved_amounts (
    checkout_id text NOT NULL COLLATE pg_catalog."C",
    network text NOT NULL COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    pay_to text NOT NULL COLLATE pg_catalog."C",
    amount numeric(78,0) NOT NULL,
    after_block bigint NOT NULL,
    reserved_at timestamp with time zone NOT NULL,
    cools_until timestamp with time zone,
    freed_at timestamp with time zone,
    reference text COLLATE pg_catalog."C",
    looked_at timestamp with time zone,
    CONSTRAINT reserved_amounts_amount_check CHECK ((amount > (0)::numeric))
);

CREATE TABLE public.restores (
    network text NOT NULL COLLATE pg_catalog."C",
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    since timestamp with time zone
);

CREATE TABLE public.rollup_cursors (
    store_id text NOT NULL COLLATE pg_catalog."C",
    sequence bigint DEFAULT 0 NOT NULL,
    time_zone text
);

CREATE TABLE public.rollup_days (
    store_id text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    figures jsonb NOT NULL
);

CREATE TABLE public.rollup_quarters (
    store_id text NOT NULL COLLATE pg_catalog."C",
    starts_at timestamp with time zone NOT NULL,
    figures jsonb NOT NULL
);

CREATE TABLE public.schedules (
    name text NOT NULL COLLATE pg_catalog."C",
    run_at timestamp with time zone NOT NULL,
    leased_until timestamp with time zone,
    attempt bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.schema_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    sql text NOT NULL,
    breaking boolean NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.sessions (
    id text NOT NULL COLLATE pg_catalog."C",
    token_hash bytea NOT NULL,
    member_id text NOT NULL COLLATE pg_catalog."C",
    passkey_id text COLLATE pg_catalog."C",
    browser text NOT NULL,
    address text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    uses jsonb DEFAULT '[]'::jsonb NOT NULL,
    moves smallint DEFAULT 0 NOT NULL,
    CONSTRAINT sessions_moves_check CHECK ((moves >= 0)),
    CONSTRAINT sessions_token_hash_check CHECK ((octet_length(token_hash) = 32)),
    CONSTRAINT sessions_uses_check CHECK ((jsonb_typeof(uses) = 'array'::text))
);

CREATE TABLE public.settler_gas (
    network text NOT NULL COLLATE pg_catalog."C",
    settler text NOT NULL COLLATE pg_catalog."C",
    hour timestamp with time zone NOT NULL,
    spent numeric(78,0) NOT NULL,
    payments bigint NOT NULL,
    failures bigint NOT NULL
);

CREATE TABLE public.settlers (
    network text NOT NULL COLLATE pg_catalog."C",
    address text NOT NULL COLLATE pg_catalog."C",
    state text DEFAULT 'active'::text NOT NULL,
    next_nonce bigint NOT NULL,
    lease_holder text,
    leased_until timestamp with time zone,
    epoch bigint DEFAULT 0 NOT NULL,
    alive_at timestamp with time zone,
    mined_nonce bigint DEFAULT 0 NOT NULL,
    balance_wei numeric(78,0),
    balance_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    data_fee_wei numeric(78,0) DEFAULT 0 NOT NULL,
    elsewhere boolean DEFAULT false NOT NULL,
    stopped_at timestamp with time zone,
    CONSTRAINT settlers_next_nonce_check CHECK ((next_nonce >= 0)),
    CONSTRAINT settlers_state_check CHECK ((state = ANY (ARRAY['active'::text, 'draining'::text, 'retired'::text])))
);

CREATE TABLE public.sign_ups (
    day date NOT NULL,
    block text NOT NULL COLLATE pg_catalog."C",
    count integer NOT NULL,
    CONSTRAINT sign_ups_count_check CHECK ((count > 0))
);

CREATE TABLE public.simulated_transfers (
    transaction_hash text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    checkout_id text COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    payer text NOT NULL COLLATE pg_catalog."C",
    pay_to text NOT NULL COLLATE pg_catalog."C",
    amount numeric(78,0) NOT NULL,
    nonce text COLLATE pg_catalog."C",
    steps text[] NOT NULL,
    due_at timestamp with time zone NOT NULL,
    block_hash text COLLATE pg_catalog."C",
    CONSTRAINT simulated_transfers_amount_check CHECK ((amount > (0)::numeric)),
    CONSTRAINT simulated_transfers_steps_check CHECK ((cardinality(steps) > 0))
);

CREATE TABLE public.store_gas (
    store_id text NOT NULL COLLATE pg_catalog."C",
    network text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    spent numeric(78,0) NOT NULL,
    payments bigint NOT NULL,
    failures bigint NOT NULL
);

CREATE TABLE public.stores (
    id text NOT NULL COLLATE pg_catalog."C",
    mode text NOT NULL,
    name text NOT NULL,
    logo_url text,
    accent_color text,
    finality_policy jsonb NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    support_email text,
    support_url text,
    wallet_changes text,
    time_zone text DEFAULT 'UTC'::text NOT NULL,
    report_currency text DEFAULT 'USD'::text NOT NULL,
    admission text DEFAULT 'approved'::text NOT NULL,
    signed_up boolean DEFAULT false NOT NULL,
    proven_at timestamp with time zone,
    suspended_at timestamp with time zone,
    suspended_reason text,
    manager_refund_limit numeric DEFAULT 0 NOT NULL,
    legal_name text,
    legal_address text,
    tax_id text,
    CONSTRAINT stores_accent_color_check CHECK ((accent_color ~ '^#[0-9a-f]{6}$'::text)),
    CONSTRAINT stores_admission_check CHECK ((admission = ANY (ARRAY['waiting'::text, 'unproven'::text, 'approved'::text]))),
    CONSTRAINT stores_check CHECK (((suspended_at IS NULL) = (suspended_reason IS NULL))),
    CONSTRAINT stores_manager_refund_limit_check CHECK ((manager_refund_limit >= (0)::numeric)),
    CONSTRAINT stores_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text]))),
    CONSTRAINT stores_report_currency_check CHECK ((report_currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT stores_wallet_changes_check CHECK ((wallet_changes = ANY (ARRAY['key'::text, 'member'::text])))
);

CREATE TABLE public.token_accounts (
    network text NOT NULL COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    owner text NOT NULL COLLATE pg_catalog."C",
    ready_at timestamp with time zone,
    checked_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone,
    creations integer DEFAULT 0 NOT NULL
);

CREATE TABLE public.transaction_calls (
    network text NOT NULL COLLATE pg_catalog."C",
    settler text NOT NULL COLLATE pg_catalog."C",
    settler_nonce bigint NOT NULL,
    place integer NOT NULL,
    asset text NOT NULL COLLATE pg_catalog."C",
    payer text NOT NULL COLLATE pg_catalog."C",
    nonce text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT transaction_calls_place_check CHECK ((place >= 0))
);

CREATE TABLE public.transactions (
    network text NOT NULL COLLATE pg_catalog."C",
    settler text NOT NULL COLLATE pg_catalog."C",
    nonce bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    mined_at timestamp with time zone,
    cost_wei numeric(78,0),
    CONSTRAINT transactions_nonce_check CHECK ((nonce >= 0))
);

CREATE TABLE public.truncated_logs (
    store_id text NOT NULL COLLATE pg_catalog."C",
    last_sequence bigint NOT NULL
);

CREATE TABLE public.wallet_changes (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    family text NOT NULL,
    kind text NOT NULL,
    wallet_id text NOT NULL COLLATE pg_catalog."C",
    actor json NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    ended_at timestamp with time zone,
    made integer,
    made_at timestamp with time zone,
    confirmed_by json,
    previous_id text COLLATE pg_catalog."C",
    next_id text COLLATE pg_catalog."C",
    undone_at timestamp with time zone,
    undone_by json,
    cancel_at timestamp with time zone,
    CONSTRAINT wallet_changes_check CHECK (((made IS NULL) = (made_at IS NULL))),
    CONSTRAINT wallet_changes_check1 CHECK (((made IS NULL) OR (ended_at IS NULL))),
    CONSTRAINT wallet_changes_check2 CHECK (((undone_at IS NULL) OR (made IS NOT NULL))),
    CONSTRAINT wallet_changes_check3 CHECK (((undone_at IS NULL) = (undone_by IS NULL))),
    CONSTRAINT wallet_changes_family_check CHECK ((family = ANY (ARRAY['EVM'::text, 'SOLANA'::text]))),
    CONSTRAINT wallet_changes_kind_check CHECK ((kind = ANY (ARRAY['use'::text, 'retire'::text])))
);

CREATE TABLE public.wallets (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    family text NOT NULL,
    address text NOT NULL COLLATE pg_catalog."C",
    custodial_type text NOT NULL,
    registration bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    retired_at timestamp with time zone,
    pay_to text GENERATED ALWAYS AS (
CASE family
    WHEN 'EVM'::text THEN lower(address)
    ELSE address
END) STORED NOT NULL COLLATE pg_catalog."C",
    challenge text,
    challenge_expires_at timestamp with time zone,
    proven_at timestamp with time zone,
    shared_elsewhere boolean DEFAULT false NOT NULL,
    unowned boolean DEFAULT false NOT NULL,
    elsewhere boolean DEFAULT false NOT NULL,
    released_at timestamp with time zone,
    CONSTRAINT wallets_check CHECK (((challenge IS NULL) = (challenge_expires_at IS NULL))),
    CONSTRAINT wallets_custodial_type_check CHECK ((custodial_type = ANY (ARRAY['CUSTODIAL'::text, 'NON_CUSTODIAL'::text]))),
    CONSTRAINT wallets_family_check CHECK ((family = ANY (ARRAY['EVM'::text, 'SOLANA'::text])))
);

ALTER TABLE public.wallets ALTER COLUMN registration ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.wallets_registration_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.webhook_endpoints (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    url text NOT NULL,
    types text[] DEFAULT '{}'::text[] NOT NULL,
    secrets jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    disabled_at timestamp with time zone,
    is_ordered boolean DEFAULT false NOT NULL,
    disabled_reason text,
    deleted_at timestamp with time zone,
    failing_since timestamp with time zone,
    held_until timestamp with time zone,
    due_at timestamp with time zone,
    format text DEFAULT 'json'::text NOT NULL,
    CONSTRAINT webhook_endpoints_check CHECK (((disabled_at IS NULL) = (disabled_reason IS NULL))),
    CONSTRAINT webhook_endpoints_check1 CHECK (((deleted_at IS NULL) OR (disabled_at IS NOT NULL))),
    CONSTRAINT webhook_endpoints_disabled_reason_check CHECK ((disabled_reason = ANY (ARRAY['store'::text, 'gone'::text, 'failing'::text]))),
    CONSTRAINT webhook_endpoints_format_check CHECK ((format = ANY (ARRAY['json'::text, 'slack'::text, 'discord'::text])))
);

ALTER TABLE ONLY public.address_requests
    ADD CONSTRAINT address_requests_pkey PRIMARY KEY (refund_id);

ALTER TABLE ONLY public.address_requests
    ADD CONSTRAINT address_requests_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY public.alert_cursors
    ADD CONSTRAINT alert_cursors_pkey PRIMARY KEY (store_id);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.audit_accepts
    ADD CONSTRAINT audit_accepts_pkey PRIMARY KEY (payment_id, checkout_id, store_id);

ALTER TABLE ONLY public.audit_changes
    ADD CONSTRAINT audit_changes_pkey PRIMARY KEY (network, wallet, day);

ALTER TABLE ONLY public.audit_days
    ADD CONSTRAINT audit_days_pkey PRIMARY KEY (network, wallet, asset, day);

ALTER TABLE ONLY public.audit_explanations
    ADD CONSTRAINT audit_explanations_pkey PRIMARY KEY (finding_id, amount);

ALTER TABLE ONLY public.audit_findings
    ADD CONSTRAINT audit_findings_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.audit_runs
    ADD CONSTRAINT audit_runs_pkey PRIMARY KEY (network);

ALTER TABLE ONLY public.authorizations
    ADD CONSTRAINT authorizations_pkey PRIMARY KEY (payer, nonce, asset, network);

ALTER TABLE ONLY public.blocks
    ADD CONSTRAINT blocks_pkey PRIMARY KEY (network, number);

ALTER TABLE ONLY public.broadcasts
    ADD CONSTRAINT broadcasts_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY public.buyer_receipt_counters
    ADD CONSTRAINT buyer_receipt_counters_pkey PRIMARY KEY (store_id, series, year);

ALTER TABLE ONLY public.buyer_receipts
    ADD CONSTRAINT buyer_receipts_pkey PRIMARY KEY (store_id, series, year, number);

ALTER TABLE ONLY public.cell
    ADD CONSTRAINT cell_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY public.challenges
    ADD CONSTRAINT challenges_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY public.checkouts
    ADD CONSTRAINT checkouts_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.credits
    ADD CONSTRAINT credits_pkey PRIMARY KEY (block_hash, log_index, network);

ALTER TABLE ONLY public.decisions
    ADD CONSTRAINT decisions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_endpoint_id_event_id_key UNIQUE (endpoint_id, event_id);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.delivery_attempts
    ADD CONSTRAINT delivery_attempts_pkey PRIMARY KEY (delivery_id, attempt);

ALTER TABLE ONLY public.deployment_mail_counts
    ADD CONSTRAINT deployment_mail_counts_pkey PRIMARY KEY (kind);

ALTER TABLE ONLY public.directory_state
    ADD CONSTRAINT directory_state_pkey PRIMARY KEY (only_one);

ALTER TABLE ONLY public.email_changes
    ADD CONSTRAINT email_changes_pkey PRIMARY KEY (member_id);

ALTER TABLE ONLY public.email_changes
    ADD CONSTRAINT email_changes_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY public.event_bytes
    ADD CONSTRAINT event_bytes_pkey PRIMARY KEY (store_id, slot);

ALTER TABLE ONLY public.event_counters
    ADD CONSTRAINT event_counters_pkey PRIMARY KEY (store_id);

ALTER TABLE ONLY public.event_log
    ADD CONSTRAINT event_log_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.followers
    ADD CONSTRAINT followers_pkey PRIMARY KEY (network);

ALTER TABLE ONLY public.foreign_nonces
    ADD CONSTRAINT foreign_nonces_pkey PRIMARY KEY (network, settler, nonce);

ALTER TABLE ONLY public.granted_rights
    ADD CONSTRAINT granted_rights_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (store_id, route, key);

ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_pkey PRIMARY KEY (issuer, subject);

ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY public.kept_credits
    ADD CONSTRAINT kept_credits_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.links
    ADD CONSTRAINT links_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.lookups
    ADD CONSTRAINT lookups_pkey PRIMARY KEY (network, transaction_hash);

ALTER TABLE ONLY public.mail_counts
    ADD CONSTRAINT mail_counts_pkey PRIMARY KEY (store_id, kind);

ALTER TABLE ONLY public.mail_recipients
    ADD CONSTRAINT mail_recipients_pkey PRIMARY KEY (recipient);

ALTER TABLE ONLY public.mails
    ADD CONSTRAINT mails_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.member_mail_counts
    ADD CONSTRAINT member_mail_counts_pkey PRIMARY KEY (member_id);

ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_pkey PRIMARY KEY (store_id, member_id);

ALTER TABLE ONLY public.movement_balances
    ADD CONSTRAINT movement_balances_pkey PRIMARY KEY (store_id, wallet, network, asset, starts_at);

ALTER TABLE ONLY public.movement_closings
    ADD CONSTRAINT movement_closings_pkey PRIMARY KEY (store_id);

ALTER TABLE ONLY public.movement_quarters
    ADD CONSTRAINT movement_quarters_pkey PRIMARY KEY (store_id, starts_at, type, network, asset, currency);

ALTER TABLE ONLY public.movements_due
    ADD CONSTRAINT movements_due_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.movements
    ADD CONSTRAINT movements_pkey PRIMARY KEY (store_id, number);

ALTER TABLE ONLY public.network_looks
    ADD CONSTRAINT network_looks_pkey PRIMARY KEY (network);

ALTER TABLE ONLY public.node_faults
    ADD CONSTRAINT node_faults_pkey PRIMARY KEY (network, provider);

ALTER TABLE ONLY public.node_hours
    ADD CONSTRAINT node_hours_pkey PRIMARY KEY (network, provider, hour);

ALTER TABLE ONLY public.node_limits
    ADD CONSTRAINT node_limits_pkey PRIMARY KEY (network, provider);

ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_credential_id_key UNIQUE (credential_id);

ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.pasted_transactions
    ADD CONSTRAINT pasted_transactions_pkey PRIMARY KEY (checkout_id, network, transaction_hash);

ALTER TABLE ONLY public.payment_hints
    ADD CONSTRAINT payment_hints_pkey PRIMARY KEY (payment_id, checkout_id);

ALTER TABLE ONLY public.payment_mail_cursors
    ADD CONSTRAINT payment_mail_cursors_pkey PRIMARY KEY (store_id, member_id);

ALTER TABLE ONLY public.payment_notes
    ADD CONSTRAINT payment_notes_pkey PRIMARY KEY (payment_id, store_id);

ALTER TABLE ONLY public.rates
    ADD CONSTRAINT rates_pkey PRIMARY KEY (source, currency);

ALTER TABLE ONLY public.recovery_codes
    ADD CONSTRAINT recovery_codes_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY public.refund_totals
    ADD CONSTRAINT refund_totals_pkey PRIMARY KEY (network, asset, identity);

ALTER TABLE ONLY public.refunds
    ADD CONSTRAINT refunds_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.report_mappings
    ADD CONSTRAINT report_mappings_pkey PRIMARY KEY (store_id, place);

ALTER TABLE ONLY public.reserved_amounts
    ADD CONSTRAINT reserved_amounts_pkey PRIMARY KEY (checkout_id, network, asset);

ALTER TABLE ONLY public.restores
    ADD CONSTRAINT restores_pkey PRIMARY KEY (network);

ALTER TABLE ONLY public.rollup_cursors
    ADD CONSTRAINT rollup_cursors_pkey PRIMARY KEY (store_id);

ALTER TABLE ONLY public.rollup_days
    ADD CONSTRAINT rollup_days_pkey PRIMARY KEY (store_id, day);

ALTER TABLE ONLY public.rollup_quarters
    ADD CONSTRAINT rollup_quarters_pkey PRIMARY KEY (store_id, starts_at);

ALTER TABLE ONLY public.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY public.settler_gas
    ADD CONSTRAINT settler_gas_pkey PRIMARY KEY (network, settler, hour);

ALTER TABLE ONLY public.settlers
    ADD CONSTRAINT settlers_pkey PRIMARY KEY (network, address);

ALTER TABLE ONLY public.sign_ups
    ADD CONSTRAINT sign_ups_pkey PRIMARY KEY (day, block);

ALTER TABLE ONLY public.simulated_transfers
    ADD CONSTRAINT simulated_transfers_pkey PRIMARY KEY (transaction_hash);

ALTER TABLE ONLY public.store_gas
    ADD CONSTRAINT store_gas_pkey PRIMARY KEY (store_id, network, day);

ALTER TABLE ONLY public.stores
    ADD CONSTRAINT stores_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.token_accounts
    ADD CONSTRAINT token_accounts_pkey PRIMARY KEY (network, asset, owner);

ALTER TABLE ONLY public.transaction_calls
    ADD CONSTRAINT transaction_calls_pkey PRIMARY KEY (settler, settler_nonce, network, place);

ALTER TABLE ONLY public.transactions
    ADD CONSTRAINT transactions_pkey PRIMARY KEY (network, settler, nonce);

ALTER TABLE ONLY public.truncated_logs
    ADD CONSTRAINT truncated_logs_pkey PRIMARY KEY (store_id);

ALTER TABLE ONLY public.wallet_changes
    ADD CONSTRAINT wallet_changes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.wallets
    ADD CONSTRAINT wallets_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (id);

CREATE INDEX address_requests_by_store ON public.address_requests USING btree (store_id, refund_id);

CREATE INDEX api_keys_by_store ON public.api_keys USING btree (store_id, id);

CREATE UNIQUE INDEX audit_findings_once ON public.audit_findings USING btree (network, wallet, asset, day, kind, transaction_hash, "position", checkout_id, store_id) NULLS NOT DISTINCT;

CREATE INDEX audit_findings_open ON public.audit_findings USING btree (store_id, day) WHERE (resolved_at IS NULL);

CREATE UNIQUE INDEX authorizations_by_identifier ON public.authorizations USING btree (store_id, payment_identifier) WHERE (payment_identifier IS NOT NULL);

CREATE INDEX authorizations_ended ON public.authorizations USING btree (checkout_id) WHERE (state = ANY (ARRAY['rejected'::text, 'dead'::text]));

CREATE INDEX authorizations_failed ON public.authorizations USING btree (payer, network, failed_at) WHERE (failed_at IS NOT NULL);

CREATE INDEX authorizations_in_flight ON public.authorizations USING btree (payer, asset, network) WHERE ((state = ANY (ARRAY['claimed'::text, 'sent'::text])) AND (NOT is_credited));

CREATE UNIQUE INDEX authorizations_one_unresolved_per_checkout ON public.authorizations USING btree (checkout_id) WHERE (state = ANY (ARRAY['claimed'::text, 'sent'::text]));

CREATE INDEX authorizations_prepared ON public.authorizations USING btree (network, valid_before) WHERE (state = 'prepared'::text);

CREATE INDEX authorizations_refunds_to_settle ON public.authorizations USING btree (network, claimed_at) WHERE ((state = 'claimed'::text) AND (refund_id IS NOT NULL));

CREATE INDEX authorizations_spent ON public.authorizations USING btree (network, spent_block_number) WHERE (spent_block_number IS NOT NULL);

CREATE INDEX authorizations_to_settle ON public.authorizations USING btree (network, claimed_at) WHERE ((state = 'claimed'::text) AND (refund_id IS NULL));

CREATE INDEX authorizations_unresolved ON public.authorizations USING btree (valid_before, network) WHERE ((state = ANY (ARRAY['claimed'::text, 'sent'::text])) AND (NOT is_credited));

CREATE INDEX broadcasts_by_transaction ON public.broadcasts USING btree (network, settler, nonce);

CREATE INDEX buyer_receipts_by_checkout ON public.buyer_receipts USING btree (checkout_id, payment_id);

CREATE UNIQUE INDEX buyer_receipts_valid ON public.buyer_receipts USING btree (checkout_id) WHERE (void_at IS NULL);

CREATE INDEX challenges_by_end ON public.challenges USING btree (expires_at);

CREATE INDEX checkouts_by_browser ON public.checkouts USING btree (link_id, opened_by) WHERE (opened_by IS NOT NULL);

CREATE INDEX checkouts_by_link ON public.checkouts USING btree (link_id, id) WHERE (link_id IS NOT NULL);

CREATE INDEX checkouts_by_link_open ON public.checkouts USING btree (link_id, id) WHERE ((link_id IS NOT NULL) AND (status = 'OPEN'::text));

CREATE INDEX checkouts_by_order ON public.checkouts USING btree (store_id, order_id, id);

CREATE INDEX checkouts_by_status ON public.checkouts USING btree (store_id, status, id);

CREATE INDEX checkouts_by_store ON public.checkouts USING btree (store_id, id);

CREATE INDEX checkouts_processing ON public.checkouts USING btree (id) WHERE (status = 'PROCESSING'::text);

CREATE INDEX checkouts_to_expire ON public.checkouts USING btree (expires_at) WHERE (status = 'OPEN'::text);

CREATE INDEX credits_by_checkout ON public.credits USING btree (checkout_id);

CREATE INDEX credits_by_payer ON public.credits USING btree (store_id, payer, payment_id) WHERE (checkout_id IS NOT NULL);

CREATE INDEX credits_by_payment ON public.credits USING btree (payment_id);

CREATE INDEX credits_by_sender ON public.credits USING btree (sender) WHERE (sender IS NOT NULL);

CREATE INDEX credits_by_store ON public.credits USING btree (store_id, payment_id);

CREATE INDEX credits_by_time ON public.credits USING brin (block_time) WITH (pages_per_range='32', autosummarize='on');

CREATE INDEX credits_by_wallet ON public.credits USING btree (pay_to, payment_id) WHERE (checkout_id IS NULL);

CREATE INDEX credits_not_final ON public.credits USING btree (network, block_number) WHERE ((orphaned_at IS NULL) AND (finalized_at IS NULL));

CREATE UNIQUE INDEX credits_one_exact_per_checkout ON public.credits USING btree (checkout_id) WHERE ((orphaned_at IS NULL) AND (disposition = 'exact'::text));

CREATE UNIQUE INDEX credits_one_per_authorization ON public.credits USING btree (nonce, payer, asset, network) WHERE ((orphaned_at IS NULL) AND (nonce IS NOT NULL));

CREATE UNIQUE INDEX credits_one_per_log ON public.credits USING btree (transaction_hash, network, asset, payer, pay_to, amount, "position") WHERE (orphaned_at IS NULL);

CREATE INDEX credits_open ON public.credits USING btree (store_id, payment_id) WHERE ((checkout_id IS NOT NULL) AND (disposition <> 'exact'::text) AND (orphaned_at IS NULL) AND (dismissed_at IS NULL) AND (accepted_at IS NULL));

CREATE INDEX credits_open_by_wallet ON public.credits USING btree (pay_to, payment_id) WHERE ((checkout_id IS NULL) AND (amount >= (10000)::numeric) AND (orphaned_at IS NULL) AND (dismissed_at IS NULL) AND (accepted_at IS NULL));

CREATE INDEX credits_orphaned_by_authorization ON public.credits USING btree (nonce, payer, asset, network) WHERE ((orphaned_at IS NOT NULL) AND (nonce IS NOT NULL));

CREATE INDEX credits_orphaned_by_transaction ON public.credits USING btree (transaction_hash) WHERE (orphaned_at IS NOT NULL);

CREATE INDEX credits_taken_back ON public.credits USING btree (network) WHERE ((orphaned_at IS NOT NULL) AND (reversed_at IS NULL) AND (nonce IS NULL));

CREATE INDEX credits_to_decide ON public.credits USING btree (store_id, disposition, payment_id) WHERE (disposition <> 'exact'::text);

CREATE INDEX credits_told_alone ON public.credits USING btree (network) WHERE ((witnessed_at IS NULL) AND (orphaned_at IS NULL));

CREATE INDEX credits_unannounced ON public.credits USING btree (network) WHERE ((orphaned_at IS NULL) AND (checkout_id IS NULL) AND (announced IS NULL));

CREATE INDEX credits_undecided ON public.credits USING btree (network, asset, amount) WHERE ((orphaned_at IS NULL) AND (checkout_id IS NULL) AND (dismissed_at IS NULL));

CREATE INDEX credits_unmatched ON public.credits USING btree (network, asset, payer, nonce) WHERE ((orphaned_at IS NULL) AND (checkout_id IS NULL));

CREATE INDEX credits_withdrawn ON public.credits USING btree (network, orphaned_at) WHERE (log_index < 0);

CREATE INDEX decisions_applied ON public.decisions USING btree (decided_at) WHERE (decided_at IS NOT NULL);

CREATE INDEX decisions_by_store ON public.decisions USING btree (store_id, id) WHERE (decided_at IS NULL);

CREATE UNIQUE INDEX decisions_held ON public.decisions USING btree (payment_id, store_id) WHERE ((decided_at IS NULL) AND (due_at IS NOT NULL));

CREATE INDEX decisions_held_by_store ON public.decisions USING btree (store_id, created_at) WHERE (together IS NOT NULL);

CREATE UNIQUE INDEX decisions_waiting ON public.decisions USING btree (payment_id, store_id, kind, COALESCE(checkout_id, ''::text)) WHERE (decided_at IS NULL);

CREATE INDEX deliveries_due ON public.deliveries USING btree (endpoint_id, run_at) WHERE (state = 'pending'::text);

CREATE INDEX deliveries_in_order ON public.deliveries USING btree (endpoint_id, sequence) WHERE (state = 'pending'::text);

CREATE INDEX email_changes_over ON public.email_changes USING btree (expires_at);

CREATE UNIQUE INDEX events_by_sequence ON public.events USING btree (store_id, sequence) WHERE (sequence IS NOT NULL);

CREATE UNIQUE INDEX events_one_per_version ON public.events USING btree (checkout_id, checkout_version, (
CASE
    WHEN (type ~~ 'checkout.%'::text) THEN ''::text
    ELSE id
END)) WHERE (checkout_id IS NOT NULL);

CREATE INDEX events_unsequenced ON public.events USING btree (store_id, "position") WHERE (sequence IS NULL);

CREATE INDEX idempotency_keys_by_age ON public.idempotency_keys USING brin (created_at);

CREATE INDEX identities_by_member ON public.identities USING btree (member_id);

CREATE INDEX invitations_by_inviter ON public.invitations USING btree (invited_by);

CREATE INDEX invitations_by_member ON public.invitations USING btree (member_id);

CREATE INDEX invitations_by_store ON public.invitations USING btree (store_id, id) WHERE (used_at IS NULL);

CREATE INDEX links_by_store ON public.links USING btree (store_id, id);

CREATE UNIQUE INDEX links_idempotency ON public.links USING btree (store_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);

CREATE UNIQUE INDEX links_invoice_number ON public.links USING btree (store_id, invoice_number) WHERE (invoice_number IS NOT NULL);

CREATE INDEX links_until ON public.links USING btree (until);

CREATE INDEX lookups_to_make ON public.lookups USING btree (network, asked_at) WHERE (outcome = 'looking'::text);

CREATE INDEX mail_recipients_by_time ON public.mail_recipients USING btree (mailed_at);

CREATE INDEX mails_about ON public.mails USING btree (about);

CREATE INDEX mails_by_due ON public.mails USING btree (due_at);

CREATE INDEX memberships_by_member ON public.memberships USING btree (member_id);

CREATE UNIQUE INDEX memberships_by_stop_token ON public.memberships USING btree (stop_token);

CREATE INDEX movements_by_payment ON public.movements USING btree (payment_id, store_id, number);

CREATE INDEX movements_by_time ON public.movements USING btree (store_id, booked_at, number);

CREATE INDEX movements_due_by_turn ON public.movements_due USING btree (turn, due_at, id);

CREATE INDEX movements_due_refused ON public.movements_due USING btree (id) WHERE (tries > 0);

CREATE UNIQUE INDEX movements_reversed ON public.movements USING btree (store_id, reverses) WHERE (reverses IS NOT NULL);

CREATE INDEX passkeys_by_member ON public.passkeys USING btree (member_id, id);

CREATE INDEX passkeys_waiting ON public.passkeys USING btree (waits_until) WHERE (waits_until IS NOT NULL);

CREATE INDEX pasted_transactions_to_look_up ON public.pasted_transactions USING btree (network, pasted_at) WHERE (outcome = 'looking'::text);

CREATE INDEX payment_hints_by_checkout ON public.payment_hints USING btree (checkout_id);

CREATE INDEX payment_mail_cursors_by_member ON public.payment_mail_cursors USING btree (member_id);

CREATE INDEX recovery_codes_by_member ON public.recovery_codes USING btree (member_id);

CREATE INDEX refund_totals_by_payment ON public.refund_totals USING btree (payment_id);

CREATE INDEX refunds_by_checkout ON public.refunds USING btree (checkout_id) WHERE (checkout_id IS NOT NULL);

CREATE UNIQUE INDEX refunds_by_idempotency_key ON public.refunds USING btree (store_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);

CREATE INDEX refunds_by_nonce ON public.refunds USING btree (nonce) WHERE (nonce IS NOT NULL);

CREATE INDEX refunds_by_payment ON public.refunds USING btree (payment_id);

CREATE INDEX refunds_by_store ON public.refunds USING btree (store_id, id);

CREATE INDEX refunds_named ON public.refunds USING btree (network, looked_at) WHERE ((status = 'SENT'::text) AND (way = 'self-sent'::text) AND ("position" IS NULL));

CREATE UNIQUE INDEX refunds_one_per_transfer ON public.refunds USING btree (transaction_hash, network, asset, "position") WHERE ("position" IS NOT NULL);

CREATE INDEX refunds_unfinished ON public.refunds USING btree (store_id, wallet) WHERE (is_watched OR (status = ANY (ARRAY['REQUESTED'::text, 'SIGNED'::text, 'SENT'::text])));

CREATE INDEX refunds_watched ON public.refunds USING btree (id) WHERE is_watched;

CREATE UNIQUE INDEX reserved_amounts_by_reference ON public.reserved_amounts USING btree (reference) WHERE (reference IS NOT NULL);

CREATE UNIQUE INDEX reserved_amounts_held ON public.reserved_amounts USING btree (network, asset, pay_to, amount) WHERE ((freed_at IS NULL) AND (reference IS NULL));

CREATE INDEX reserved_amounts_to_look_for ON public.reserved_amounts USING btree (network, looked_at) WHERE ((reference IS NOT NULL) AND (freed_at IS NULL));

CREATE INDEX sessions_by_end ON public.sessions USING btree (expires_at);

CREATE INDEX sessions_by_member ON public.sessions USING btree (member_id, id);

CREATE INDEX simulated_transfers_due ON public.simulated_transfers USING btree (due_at);

CREATE UNIQUE INDEX simulated_transfers_once ON public.simulated_transfers USING btree (asset, payer, nonce);

CREATE INDEX stores_waiting ON public.stores USING btree (id) WHERE ((admission <> 'approved'::text) OR (suspended_at IS NOT NULL));

CREATE INDEX token_accounts_by_creation ON public.token_accounts USING btree (created_at) WHERE (created_at IS NOT NULL);

CREATE INDEX token_accounts_by_owner ON public.token_accounts USING btree (owner) WHERE (ready_at IS NOT NULL);

CREATE INDEX transaction_calls_by_authorization ON public.transaction_calls USING btree (nonce, payer, asset, network);

CREATE INDEX transactions_to_cost ON public.transactions USING btree (network, settler, mined_at) WHERE ((mined_at IS NOT NULL) AND (cost_wei IS NULL));

CREATE INDEX transactions_unmined ON public.transactions USING btree (network, settler, nonce) WHERE (mined_at IS NULL);

CREATE INDEX wallet_changes_by_store ON public.wallet_changes USING btree (store_id, asked_at);

CREATE INDEX wallet_changes_by_wallet ON public.wallet_changes USING btree (wallet_id) WHERE ((made IS NULL) AND (ended_at IS NULL));

CREATE UNIQUE INDEX wallet_changes_made ON public.wallet_changes USING btree (store_id, made);

CREATE UNIQUE INDEX wallet_changes_one_waiting ON public.wallet_changes USING btree (store_id, family) WHERE ((made IS NULL) AND (ended_at IS NULL));

CREATE INDEX wallet_changes_to_cancel ON public.wallet_changes USING btree (cancel_at) WHERE (cancel_at IS NOT NULL);

CREATE INDEX wallets_by_pay_to ON public.wallets USING btree (pay_to);

CREATE INDEX wallets_by_solana_address ON public.wallets USING btree (address) WHERE (family = 'SOLANA'::text);

CREATE INDEX wallets_by_store ON public.wallets USING btree (store_id, id);

CREATE INDEX wallets_elsewhere ON public.wallets USING btree (pay_to) WHERE elsewhere;

CREATE UNIQUE INDEX wallets_one_active_per_address ON public.wallets USING btree (store_id, family, address) WHERE (retired_at IS NULL);

CREATE INDEX webhook_endpoints_by_store ON public.webhook_endpoints USING btree (store_id, id);

CREATE INDEX webhook_endpoints_due ON public.webhook_endpoints USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE UNIQUE INDEX webhook_endpoints_one_per_url ON public.webhook_endpoints USING btree (store_id, url) WHERE (deleted_at IS NULL);

CREATE TRIGGER accept_is_noted AFTER INSERT ON public.decisions FOR EACH ROW WHEN ((new.kind = 'accept'::text)) EXECUTE FUNCTION public.note_accept();

CREATE TRIGGER credit_is_followed AFTER INSERT OR UPDATE OF orphaned_at, checkout_id ON public.credits FOR EACH ROW WHEN ((new.nonce IS NOT NULL)) EXECUTE FUNCTION public.follow_credit();

CREATE TRIGGER expiry_is_guarded BEFORE UPDATE OF expires_at ON public.checkouts FOR EACH ROW EXECUTE FUNCTION public.guard_expiry();

CREATE TRIGGER insert_is_noted AFTER INSERT ON public.credits REFERENCING NEW TABLE AS new_credits FOR EACH STATEMENT EXECUTE FUNCTION public.note_credits();

CREATE TRIGGER making_is_guarded BEFORE INSERT OR UPDATE ON public.wallet_changes FOR EACH ROW EXECUTE FUNCTION public.guard_change();

CREATE TRIGGER mode_is_kept BEFORE UPDATE OF mode ON public.stores FOR EACH ROW WHEN ((new.mode <> old.mode)) EXECUTE FUNCTION public.keep_mode();

CREATE TRIGGER movement_is_due AFTER UPDATE OF finalized_at, reversed_at, checkout_id ON public.credits FOR EACH ROW WHEN ((((new.disposition <> 'exact'::text) AND (new.finalized_at IS NOT NULL) AND (old.finalized_at IS NULL)) OR ((new.checkout_id IS NULL) AND (new.reversed_at IS NOT NULL) AND (old.reversed_at IS NULL)) OR ((new.finalized_at IS NOT NULL) AND (new.checkout_id IS DISTINCT FROM old.checkout_id)))) EXECUTE FUNCTION public.queue_movement();

CREATE TRIGGER refund_is_guarded BEFORE UPDATE OF status ON public.refunds FOR EACH ROW EXECUTE FUNCTION public.guard_refund();

CREATE TRIGGER refund_is_watched_again AFTER UPDATE OF orphaned_at ON public.credits FOR EACH ROW WHEN (((old.finalized_at IS NOT NULL) AND (new.orphaned_at IS NOT NULL) AND (new.nonce IS NOT NULL))) EXECUTE FUNCTION public.watch_refund();

CREATE TRIGGER simulated_for_tests BEFORE INSERT OR UPDATE OF store_id, pay_to, network ON public.authorizations FOR EACH ROW WHEN ((new.network = 'farthing:simulated'::text)) EXECUTE FUNCTION public.guard_simulated();

CREATE TRIGGER simulated_for_tests BEFORE INSERT OR UPDATE OF options, store_id ON public.checkouts FOR EACH ROW WHEN (((new.options)::text ~~ '%farthing:simulated%'::text)) EXECUTE FUNCTION public.guard_simulated_checkout();

CREATE TRIGGER simulated_for_tests BEFORE INSERT OR UPDATE OF store_id, pay_to, network, checkout_id ON public.credits FOR EACH ROW WHEN ((new.network = 'farthing:simulated'::text)) EXECUTE FUNCTION public.guard_simulated();

CREATE TRIGGER simulated_for_tests BEFORE INSERT OR UPDATE OF checkout_id, network ON public.reserved_amounts FOR EACH ROW WHEN ((new.network = 'farthing:simulated'::text)) EXECUTE FUNCTION public.guard_simulated_amount();

CREATE TRIGGER simulated_for_tests BEFORE INSERT OR UPDATE ON public.simulated_transfers FOR EACH ROW EXECUTE FUNCTION public.guard_simulated();

CREATE TRIGGER status_is_guarded BEFORE UPDATE OF status ON public.checkouts FOR EACH ROW EXECUTE FUNCTION public.guard_status();

CREATE TRIGGER terms_are_kept BEFORE UPDATE OF recipient ON public.refunds FOR EACH ROW EXECUTE FUNCTION public.keep_terms();

CREATE TRIGGER update_is_noted AFTER UPDATE ON public.credits FOR EACH ROW WHEN ((((((((((old.network IS DISTINCT FROM new.network) OR (old.transaction_hash IS DISTINCT FROM new.transaction_hash)) OR (old.asset IS DISTINCT FROM new.asset)) OR (old.payer IS DISTINCT FROM new.payer)) OR (old.pay_to IS DISTINCT FROM new.pay_to)) OR (old.amount IS DISTINCT FROM new.amount)) OR (old.block_time IS DISTINCT FROM new.block_time)) OR (old.checkout_id IS DISTINCT FROM new.checkout_id)) OR ((old.orphaned_at IS NULL) IS DISTINCT FROM (new.orphaned_at IS NULL)))) EXECUTE FUNCTION public.note_credit();

CREATE TRIGGER use_is_guarded BEFORE INSERT OR UPDATE OF registration, retired_at ON public.wallets FOR EACH ROW EXECUTE FUNCTION public.guard_wallet();

ALTER TABLE ONLY public.address_requests
    ADD CONSTRAINT address_requests_refund_id_fkey FOREIGN KEY (refund_id) REFERENCES public.refunds(id);

ALTER TABLE ONLY public.address_requests
    ADD CONSTRAINT address_requests_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.alert_cursors
    ADD CONSTRAINT alert_cursors_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.audit_explanations
    ADD CONSTRAINT audit_explanations_finding_id_fkey FOREIGN KEY (finding_id) REFERENCES public.audit_findings(id);

ALTER TABLE ONLY public.audit_explanations
    ADD CONSTRAINT audit_explanations_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.audit_findings
    ADD CONSTRAINT audit_findings_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.authorizations
    ADD CONSTRAINT authorizations_refund_id_fkey FOREIGN KEY (refund_id) REFERENCES public.refunds(id);

ALTER TABLE ONLY public.broadcasts
    ADD CONSTRAINT broadcasts_network_settler_nonce_fkey FOREIGN KEY (network, settler, nonce) REFERENCES public.transactions(network, settler, nonce);

ALTER TABLE ONLY public.buyer_receipt_counters
    ADD CONSTRAINT buyer_receipt_counters_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.buyer_receipts
    ADD CONSTRAINT buyer_receipts_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.decisions
    ADD CONSTRAINT decisions_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES public.webhook_endpoints(id);

ALTER TABLE ONLY public.delivery_attempts
    ADD CONSTRAINT delivery_attempts_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES public.deliveries(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.email_changes
    ADD CONSTRAINT email_changes_member_id_fkey FOREIGN KEY (member_id) REFERENCES public.members(id);

ALTER TABLE ONLY public.event_bytes
    ADD CONSTRAINT event_bytes_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.event_counters
    ADD CONSTRAINT event_counters_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_member_id_fkey FOREIGN KEY (member_id) REFERENCES public.members(id);

ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_invited_by_fkey FOREIGN KEY (invited_by) REFERENCES public.members(id);

ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.links
    ADD CONSTRAINT links_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.mail_counts
    ADD CONSTRAINT mail_counts_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.member_mail_counts
    ADD CONSTRAINT member_mail_counts_member_id_fkey FOREIGN KEY (member_id) REFERENCES public.members(id);

ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_member_id_fkey FOREIGN KEY (member_id) REFERENCES public.members(id);

ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.movement_balances
    ADD CONSTRAINT movement_balances_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.movement_closings
    ADD CONSTRAINT movement_closings_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.movement_quarters
    ADD CONSTRAINT movement_quarters_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.movements
    ADD CONSTRAINT movements_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_member_id_fkey FOREIGN KEY (member_id) REFERENCES public.members(id);

ALTER TABLE ONLY public.pasted_transactions
    ADD CONSTRAINT pasted_transactions_checkout_id_fkey FOREIGN KEY (checkout_id) REFERENCES public.checkouts(id);

ALTER TABLE ONLY public.payment_hints
    ADD CONSTRAINT payment_hints_checkout_id_fkey FOREIGN KEY (checkout_id) REFERENCES public.checkouts(id);

ALTER TABLE ONLY public.payment_mail_cursors
    ADD CONSTRAINT payment_mail_cursors_store_id_member_id_fkey FOREIGN KEY (store_id, member_id) REFERENCES public.memberships(store_id, member_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.payment_notes
    ADD CONSTRAINT payment_notes_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.recovery_codes
    ADD CONSTRAINT recovery_codes_member_id_fkey FOREIGN KEY (member_id) REFERENCES public.members(id);

ALTER TABLE ONLY public.refund_totals
    ADD CONSTRAINT refund_totals_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.refunds
    ADD CONSTRAINT refunds_network_asset_identity_fkey FOREIGN KEY (network, asset, identity) REFERENCES public.refund_totals(network, asset, identity);

ALTER TABLE ONLY public.refunds
    ADD CONSTRAINT refunds_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.report_mappings
    ADD CONSTRAINT report_mappings_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.reserved_amounts
    ADD CONSTRAINT reserved_amounts_checkout_id_fkey FOREIGN KEY (checkout_id) REFERENCES public.checkouts(id);

ALTER TABLE ONLY public.rollup_cursors
    ADD CONSTRAINT rollup_cursors_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.rollup_days
    ADD CONSTRAINT rollup_days_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.rollup_quarters
    ADD CONSTRAINT rollup_quarters_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_member_id_fkey FOREIGN KEY (member_id) REFERENCES public.members(id);

ALTER TABLE ONLY public.simulated_transfers
    ADD CONSTRAINT simulated_transfers_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.store_gas
    ADD CONSTRAINT store_gas_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.transactions
    ADD CONSTRAINT transactions_network_settler_fkey FOREIGN KEY (network, settler) REFERENCES public.settlers(network, address);

ALTER TABLE ONLY public.truncated_logs
    ADD CONSTRAINT truncated_logs_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.wallet_changes
    ADD CONSTRAINT wallet_changes_next_id_fkey FOREIGN KEY (next_id) REFERENCES public.wallets(id);

ALTER TABLE ONLY public.wallet_changes
    ADD CONSTRAINT wallet_changes_previous_id_fkey FOREIGN KEY (previous_id) REFERENCES public.wallets(id);

ALTER TABLE ONLY public.wallet_changes
    ADD CONSTRAINT wallet_changes_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.wallet_changes
    ADD CONSTRAINT wallet_changes_wallet_id_fkey FOREIGN KEY (wallet_id) REFERENCES public.wallets(id);

ALTER TABLE ONLY public.wallets
    ADD CONSTRAINT wallets_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE public.address_requests ENABLE ROW LEVEL SECURITY;

CREATE POLICY all_rows ON public.address_requests USING (true);

CREATE POLICY all_rows ON public.api_keys USING (true);

CREATE POLICY all_rows ON public.audit_days USING (true);

CREATE POLICY all_rows ON public.audit_explanations USING (true);

CREATE POLICY all_rows ON public.audit_findings USING (true);

CREATE POLICY all_rows ON public.authorizations USING (true);

CREATE POLICY all_rows ON public.buyer_receipt_counters USING (true);

CREATE POLICY all_rows ON public.buyer_receipts USING (true);

CREATE POLICY all_rows ON public.checkouts USING (true);

CREATE POLICY all_rows ON public.credits USING (true);

CREATE POLICY all_rows ON public.decisions USING (true);

CREATE POLICY all_rows ON public.deliveries USING (true);

CREATE POLICY all_rows ON public.event_bytes USING (true);

CREATE POLICY all_rows ON public.events USING (true);

CREATE POLICY all_rows ON public.idempotency_keys USING (true);

CREATE POLICY all_rows ON public.links USING (true);

CREATE POLICY all_rows ON public.mail_counts USING (true);

CREATE POLICY all_rows ON public.movement_balances USING (true);

CREATE POLICY all_rows ON public.movement_quarters USING (true);

CREATE POLICY all_rows ON public.movements USING (true);

CREATE POLICY all_rows ON public.payment_notes USING (true);

CREATE POLICY all_rows ON public.refunds USING (true);

CREATE POLICY all_rows ON public.report_mappings USING (true);

CREATE POLICY all_rows ON public.rollup_cursors USING (true);

CREATE POLICY all_rows ON public.rollup_days USING (true);

CREATE POLICY all_rows ON public.rollup_quarters USING (true);

CREATE POLICY all_rows ON public.schedules USING (true);

CREATE POLICY all_rows ON public.store_gas USING (true);

CREATE POLICY all_rows ON public.truncated_logs USING (true);

CREATE POLICY all_rows ON public.wallet_changes USING (true);

CREATE POLICY all_rows ON public.wallets USING (true);

CREATE POLICY all_rows ON public.webhook_endpoints USING (true);

ALTER TABLE public.api_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.audit_days ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.audit_explanations ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.audit_findings ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.authorizations ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.buyer_receipt_counters ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.buyer_receipts ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.checkouts ENABLE ROW LEVEL SECURITY;

CREATE POLICY console_writes_its_own ON public.events AS RESTRICTIVE FOR INSERT TO farthing_console WITH CHECK (((sequence IS NULL) AND (starts_with(type, 'member.'::text) OR (type = ANY ('{checkout.created,checkout.canceled,refund.requested,refund.address_updated,refund.declared,refund.canceled,link.created,link.updated,link.closed,wallet.confirmed,wallet.refused,wallet.undone,wallet.registered,wallet.updated,wallet.retired,store.updated,store.approved,store.suspended,store.resumed,key.created,key.revoked,webhook_endpoint.created,webhook_endpoint.updated,webhook_endpoint.deleted,webhook_endpoint.test}'::text[])))));

CREATE POLICY created_open ON public.checkouts AS RESTRICTIVE FOR INSERT TO farthing_serve, farthing_console WITH CHECK ((status = 'OPEN'::text));

CREATE POLICY created_unpaid ON public.refunds AS RESTRICTIVE FOR INSERT TO farthing_serve, farthing_console WITH CHECK ((status = ANY (ARRAY['REQUESTED'::text, 'SENT'::text])));

ALTER TABLE public.credits ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.decisions ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.deliveries ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.event_bytes ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.events ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.idempotency_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.links ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.mail_counts ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.movement_balances ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.movement_quarters ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.movements ENABLE ROW LEVEL SECURITY;

CREATE POLICY not_the_audits ON public.schedules AS RESTRICTIVE TO farthing_work USING ((name !~~ 'audit%'::text)) WITH CHECK ((name !~~ 'audit%'::text));

CREATE POLICY one_store ON public.address_requests AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.api_keys AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.audit_explanations AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.audit_findings AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.authorizations AS RESTRICTIVE TO farthing_console USING (((store_id = current_setting('farthing.store'::text, true)) OR ((store_id IS NULL) AND (nonce ~~ '0x66746872%'::text) AND (payer IN ( SELECT w.pay_to
   FROM public.wallets w))))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.buyer_receipt_counters AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.buyer_receipts AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.checkouts AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.credits AS RESTRICTIVE TO farthing_console USING (((store_id = current_setting('farthing.store'::text, true)) OR ((checkout_id IS NULL) AND ((pay_to IN ( SELECT w.pay_to
   FROM public.wallets w)) OR (pay_to = ('sim_'::text || current_setting('farthing.store'::text, true))) OR ((nonce ~~ '0x66746872%'::text) AND (payer IN ( SELECT w.pay_to
   FROM public.wallets w))))))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.decisions AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.deliveries AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.event_bytes AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.events AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.idempotency_keys AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.links AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.mail_counts AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.movement_balances AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.movement_quarters AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.movements AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.payment_notes AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.refunds AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.report_mappings AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.rollup_cursors AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.rollup_days AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.rollup_quarters AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.store_gas AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.truncated_logs AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.wallet_changes AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.wallets AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.webhook_endpoints AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true))) WITH CHECK ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY own_tasks ON public.schedules AS RESTRICTIVE TO farthing_audit USING ((name ~~ 'audit%'::text)) WITH CHECK ((name ~~ 'audit%'::text));

CREATE POLICY own_wallets ON public.audit_days AS RESTRICTIVE TO farthing_console USING ((wallet IN ( SELECT w.pay_to
   FROM public.wallets w)));

ALTER TABLE public.payment_notes ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.refunds ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.report_mappings ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.rollup_cursors ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.rollup_days ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.rollup_quarters ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.schedules ENABLE ROW LEVEL SECURITY;

CREATE POLICY serve_writes_its_own ON public.events AS RESTRICTIVE FOR INSERT TO farthing_serve WITH CHECK (((sequence IS NULL) AND (type = ANY ('{checkout.created,checkout.processing,checkout.canceled,refund.requested,refund.address_updated,refund.declared,refund.canceled,link.created,link.updated,link.closed,store.updated,wallet.registered,wallet.updated,wallet.retired,wallet.refused,key.created,key.revoked,webhook_endpoint.created,webhook_endpoint.updated,webhook_endpoint.deleted,webhook_endpoint.test}'::text[]))));

ALTER TABLE public.store_gas ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.truncated_logs ENABLE ROW LEVEL SECURITY;

CREATE POLICY undone_held ON public.decisions AS RESTRICTIVE FOR DELETE TO farthing_console USING (((decided_at IS NULL) AND (due_at IS NOT NULL)));

ALTER TABLE public.wallet_changes ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.wallets ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.webhook_endpoints ENABLE ROW LEVEL SECURITY;
