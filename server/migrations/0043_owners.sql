-- breaking
-- What a cell has in the directory is called ownership, and is permanent until an operator releases it. See
-- src/directory/directory.ts.

-- Registered, but this cell does not own it: it may not be paid.
alter table wallets rename column unclaimed to unowned;

create or replace function payment_owners(paid_to text, paid_at timestamptz, in_mode text)
returns table (store_id text, may_decide boolean)
language sql stable as $$
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
$$;

-- The generation of the directory that this cell has adopted. Null: this deployment is the only cell.
alter table directory_state rename column epoch to generation;
-- Raised before something is released. A process that read an earlier one puts nothing to use.
alter table directory_state rename column number to fence;
-- The number that was drawn for the last report, and the one for a report that has no answer yet.
alter table directory_state rename column reports to stamp;
alter table directory_state add column next_stamp bigint;
