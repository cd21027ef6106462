-- What the console may take out of the queue: a decision that it holds back, until work has applied it.
alter table decisions enable row level security;
drop policy if exists all_rows on decisions;
create policy all_rows on decisions using (true);

drop policy if exists undone_held on decisions;
create policy undone_held on decisions as restrictive for delete to farthing_console
  using (decided_at is null and due_at is not null);
