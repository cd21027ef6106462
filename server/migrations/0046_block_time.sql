-- How fast a network's blocks come, as its follower has measured it: whole milliseconds, null until a minute is read.
alter table followers add column block_time_ms integer check (block_time_ms >= 0);
