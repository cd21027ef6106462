-- A member's decision about a payment waits until it is due, and can be undone until it is applied. Those that were made
-- together are undone together. Without a due time a decision is applied at once.
alter table decisions
  add column due_at timestamptz,
  add column together text collate "C",
  add column session_id text collate "C",
  add constraint decisions_held_check check (num_nulls(due_at, together, session_id) in (0, 3));

-- Two members cannot hold different decisions about one payment.
create unique index decisions_held on decisions (payment_id, store_id) where decided_at is null and due_at is not null;
create index decisions_held_by_store on decisions (store_id, created_at) where due_at is not null;

-- The role with which a member acts whose decision is due: null once the member has left or the session has ended. Neither
-- happens until the transaction is over. work may not read sessions.
create function acting_role(of_session text, in_store text) returns text
language sql volatile security definer set search_path = public, pg_temp as $$
  select m.role from memberships m join sessions s on s.member_id = m.member_id
  where m.store_id = in_store and s.id = of_session for share of m for key share of s
$$;
