-- A member's held decision that an API key takes over stays one of those that were made together: undoing them says that
-- it was not undone.
alter table decisions
  drop constraint decisions_held_check,
  add constraint decisions_held_check check (num_nulls(due_at, session_id) in (0, 2) and (due_at is null or together is not null));

drop index decisions_held_by_store;
create index decisions_held_by_store on decisions (store_id, created_at) where together is not null;
