-- Whether a retired wallet still has a refund under way: read for every page of wallets that the directory is told about,
-- however many refunds a store has finished.
create index refunds_unfinished on refunds (store_id, wallet)
  where is_watched or status in ('REQUESTED', 'SIGNED', 'SENT');
