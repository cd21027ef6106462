-- What a store says about a checkout: null where it said nothing, which costs a row no space.
alter table checkouts
  -- For the buyer.
  add column description text,
  -- For the store alone: names and values, all of them text.
  add column metadata json;

alter table stores
  -- In which its days begin and end; an IANA name.
  add column time_zone text not null default 'UTC',
  -- ISO 4217.
  add column report_currency text not null default 'USD' check (report_currency ~ '^[A-Z]{3}$');

-- What a store notes about a payment, for itself: money without a checkout can be seen by several stores.
create table payment_notes (
  payment_id text collate "C" not null,
  store_id text collate "C" not null references stores,
  note text not null check (octet_length(note) between 1 and 1000),
  actor json not null,
  noted_at timestamptz not null,
  primary key (payment_id, store_id)
);

alter table decisions
  add column note text check (octet_length(note) between 1 and 1000),
  drop constraint decisions_kind_check,
  add constraint decisions_kind_check check (kind in ('accept', 'dismiss', 'note'));
-- How many of a store wait, and whose turn it is.
create index decisions_by_store on decisions (store_id, id) where decided_at is null;
drop index decisions_to_apply;

-- A store's payments by payer, newest first. Those without a checkout are found by wallet.
create index credits_by_payer on credits (store_id, payer, payment_id) where checkout_id is not null;

-- Whether a store sees money that matches no checkout, and may decide about it: null, false or true. It looks at other
-- stores' wallets, which the console may not, and says nothing else about them.
create function payment_right(of_store text, paid_to text, paid_at timestamptz, in_mode text) returns boolean
language sql stable security definer set search_path = public, pg_temp as $$
  select o.may_decide from payment_owners(paid_to, paid_at, in_mode) o where o.store_id = of_store
$$;
