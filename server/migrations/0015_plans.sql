-- PostgreSQL plans a statement once per connection, often while a table is new. On an almost empty table an index that
-- begins with the network looks as good by that one column as by all of its columns, and the kept plan then reads every
-- payment of the network for each payment. So an index that finds single payments begins with what no two of them share.

-- The tables that every payment writes have no foreign keys to each other: the statements that fill them join the rows
-- that they refer to, none of which is ever deleted, and each check would lock one more row version.
alter table transaction_calls
  drop constraint transaction_calls_network_asset_payer_nonce_fkey,
  drop constraint transaction_calls_network_settler_settler_nonce_fkey,
  drop constraint transaction_calls_pkey,
  add primary key (settler, settler_nonce, network, place);
drop index transaction_calls_by_authorization;
create index transaction_calls_by_authorization on transaction_calls (nonce, payer, asset, network);

alter table authorizations
  drop constraint authorizations_checkout_id_fkey,
  drop constraint authorizations_pkey,
  -- First claim wins for ever, whatever checkout, store or process asks.
  add primary key (payer, nonce, asset, network);
drop index authorizations_in_flight, authorizations_unresolved, authorizations_failed, authorizations_by_checkout;
create index authorizations_unresolved on authorizations (valid_before, network)
  where state in ('claimed', 'sent') and not is_credited;
create index authorizations_in_flight on authorizations (payer, asset, network)
  where state in ('claimed', 'sent') and not is_credited;
create index authorizations_failed on authorizations (payer, network, failed_at) where failed_at is not null;
-- The unresolved ones have an index of their own, which is unique.
create index authorizations_ended on authorizations (checkout_id) where state in ('rejected', 'dead');

alter table credits
  drop constraint credits_checkout_id_fkey,
  drop constraint credits_pkey,
  add primary key (block_hash, log_index, network);
drop index credits_one_per_authorization, credits_by_authorization, credits_by_transaction, credits_not_safe;
create unique index credits_one_per_authorization on credits (nonce, payer, asset, network)
  where orphaned_at is null and nonce is not null;
-- Live credits are found by the unique indexes of their authorization and their transaction.
create index credits_orphaned_by_authorization on credits (nonce, payer, asset, network)
  where orphaned_at is not null and nonce is not null;
create index credits_orphaned_by_transaction on credits (transaction_hash) where orphaned_at is not null;

-- Each of these rows is updated two or three times soon after it is written. With room on its page for the new versions,
-- the log of changes (WAL) holds only what changed, and a credit that becomes safe needs no new index entries.
alter table authorizations set (fillfactor = 50);
alter table credits set (fillfactor = 50);
