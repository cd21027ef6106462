-- Money that belongs to no checkout and about which nobody has decided, largest first: dust must not be counted through.
create index credits_undecided on credits (network, asset, amount)
  where orphaned_at is null and checkout_id is null and dismissed_at is null;
