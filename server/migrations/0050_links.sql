-- Addresses that a store sends or prints, payable until a time. A checkout is made when somebody wants to pay.
create table links (
  id text collate "C" primary key,
  store_id text collate "C" not null references stores,
  kind text not null check (kind in ('once', 'many')),
  title text not null,
  description text,
  -- A price, or the limits between which the buyer chooses.
  price_amount text,
  min_amount text,
  max_amount text,
  price_currency text not null check (price_currency ~ '^[A-Z]{3}$'),
  invoice json,
  invoice_number text,
  metadata json,
  until timestamptz not null,
  closed_at timestamptz,
  -- Since when one of the checkouts of a link that is paid once is paid.
  paid_at timestamptz,
  -- The checkout that all who open such a link share.
  checkout_id text collate "C",
  -- How many checkouts were made for it.
  made integer not null default 0,
  revision integer not null default 1,
  -- Authenticates what is quoted to somebody who opens it, with a key outside the database if there is one.
  quote_key bytea not null,
  actor json not null,
  idempotency_key text,
  body_hash bytea,
  -- The events about it, which are deleted with it.
  event_ids text[] not null default '{}',
  created_at timestamptz not null,
  check (case when price_amount is null then min_amount is not null and max_amount is not null
    else min_amount is null and max_amount is null end),
  check ((invoice is null) = (invoice_number is null) and (invoice is null or kind = 'once')),
  check (kind = 'once' or (paid_at is null and checkout_id is null))
);
create index links_by_store on links (store_id, id);
create unique index links_invoice_number on links (store_id, invoice_number) where invoice_number is not null;
create unique index links_idempotency on links (store_id, idempotency_key) where idempotency_key is not null;
create index links_until on links (until);

-- The link that a checkout was made for. Without a foreign key: retention deletes a link after its checkouts.
alter table checkouts add column link_id text collate "C";
-- The browser that it was made for, of a link with a checkout for each: a hash of a cookie and the link.
alter table checkouts add column opened_by bytea;
create index checkouts_by_link on checkouts (link_id, id) where link_id is not null;
create index checkouts_by_link_open on checkouts (link_id, id) where link_id is not null and status = 'OPEN';
create index checkouts_by_browser on checkouts (link_id, opened_by) where opened_by is not null;

-- Whether a link ended before a time: it can no longer be paid, and nobody is paying it.
create function link_is_over(link text, ended_before timestamptz) returns boolean language sql stable
  set search_path = public, pg_temp as $$
  select not exists (select 1 from links l where l.id = link and l.until >= ended_before)
    and not exists (select 1 from checkouts c where c.link_id = link and c.status in ('OPEN', 'PROCESSING'))
$$;

-- A link's checkouts go only with the link: what it is follows from them.
alter function list_over(text[], timestamptz) rename to list_ended;
create function list_over(ids text[], ended_before timestamptz) returns setof text language sql stable
  set search_path = public, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set enable_material = off as $$
  select e.id from list_ended(ids, ended_before) as e (id)
  cross join lateral (select * from checkouts c where c.id = e.id offset 0) c
  where c.link_id is null or link_is_over(c.link_id, ended_before)
  order by e.id
$$;

-- Deletes links that are over, as delete_over does with checkouts, once their checkouts are gone.
create function delete_links_over(days integer, batch integer) returns integer language plpgsql security definer
  set search_path = public, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
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
revoke execute on function delete_links_over from public;
