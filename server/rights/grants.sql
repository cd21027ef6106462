-- What each role may do. `migrate` applies this file in one transaction whenever it has changed; docs/roles.md shows the
-- result, made from a migrated database. Locking a row takes the right to update one of its columns.
grant usage on schema public to farthing_serve, farthing_work, farthing_console, farthing_operator, farthing_audit;
revoke all on all tables in schema public from farthing_serve, farthing_work, farthing_console, farthing_operator,
  farthing_audit;

grant select, insert, update, delete on all tables in schema public to farthing_operator;
revoke insert, update, delete on schema_migrations, granted_rights, cell from farthing_operator;
revoke insert, update, delete on movements, movement_quarters, movement_balances, movement_closings from farthing_operator;
grant select on schema_migrations, cell to farthing_serve, farthing_work, farthing_console, farthing_audit;
grant select, update (held) on directory_state to farthing_serve, farthing_console;
grant select, update on directory_state to farthing_work;

-- serve: what the API and the payment page do. It cannot write what a checkout's status is computed from (credits), nor
-- anything that a settler signs, and reads no signed bytes, no passkey and no session.
grant select, insert on checkouts to farthing_serve;
grant update (status, version, page_version) on checkouts to farthing_serve;
grant select on decisions to farthing_serve;
grant insert (id, store_id, payment_id, kind, checkout_id, note, actor, created_at) on decisions to farthing_serve;
-- Not by column: checking those would cost a twentieth of a create.
grant select, insert on events, authorizations, idempotency_keys, reserved_amounts, pasted_transactions,
  wallets, webhook_endpoints, api_keys, deliveries to farthing_serve;
-- A key's decision takes the place of a member's same one that is held back.
grant update (id, note, actor, due_at, together, session_id) on decisions to farthing_serve;
grant update (checkout_id, store_id, state, reason, claimed_at, resolved_at, is_credited)
  on authorizations to farthing_serve;
grant update (cools_until, freed_at, looked_at) on reserved_amounts to farthing_serve;
grant update (outcome, pasted_at, looked_at) on pasted_transactions to farthing_serve;
-- What happens to test stores' payments, and when their checkouts end: triggers refuse both for a live store.
grant insert on simulated_transfers to farthing_serve;
grant select, insert, update, delete on simulated_transfers to farthing_work;
grant update (expires_at) on checkouts to farthing_serve;
grant update (name, logo_url, accent_color, finality_policy, revision, support_email, support_url, legal_name,
  legal_address, tax_id, time_zone, report_currency, proven_at) on stores to farthing_serve;
grant update (registration, retired_at, custodial_type, challenge, challenge_expires_at, proven_at, shared_elsewhere,
  unowned) on wallets to farthing_serve;
grant update (url, types, is_ordered, secrets, disabled_at, disabled_reason, deleted_at, failing_since, held_until, due_at)
  on webhook_endpoints to farthing_serve;
grant update (expires_at, revoked_at, last_used_at) on api_keys to farthing_serve;
grant update (state, attempt, run_at, leased_until, tries, finished_at) on deliveries to farthing_serve;
grant select, insert, update on token_accounts to farthing_serve;
grant select, insert, update (looked_at, awake_since) on network_looks to farthing_serve;
grant select on stores, credits, blocks, followers, settlers, transactions, transaction_calls, rates, restores,
  payment_hints, payment_notes, store_gas, event_counters, event_log, delivery_attempts to farthing_serve;
grant select (hash, network, settler, nonce, created_at, first_sent_at, last_sent_at, taken_at, unfunded_at, refusal)
  on broadcasts to farthing_serve;

-- Links: what a store asks for, and the checkouts that buyers get. That one is paid is for work to say.
grant select, insert on links to farthing_serve;
grant select (id, store_id, kind, title, description, price_amount, min_amount, max_amount, price_currency, invoice,
    invoice_number, metadata, until, closed_at, paid_at, checkout_id, made, revision, idempotency_key, body_hash, event_ids,
    created_at),
  insert on links to farthing_console;
grant update (title, description, price_amount, min_amount, max_amount, metadata, until, closed_at, revision, event_ids)
  on links to farthing_serve, farthing_console;
grant update (checkout_id, made) on links to farthing_serve;
grant select (id, store_id, kind, title, description, price_amount, min_amount, max_amount, price_currency, invoice,
    invoice_number, metadata, until, closed_at, paid_at, checkout_id, made, revision, event_ids, created_at),
  update (paid_at, event_ids) on links to farthing_work;
grant update (opened_by) on checkouts to farthing_serve;

-- Buyers' receipts: work numbers them and says that one is void. Nobody else makes one, and nobody changes a number.
grant select on buyer_receipts to farthing_serve, farthing_console, farthing_work;
grant update (mailed) on buyer_receipts to farthing_serve;
grant insert, update (void_at) on buyer_receipts to farthing_work;
grant select, insert, update (last_number) on buyer_receipt_counters to farthing_work;

-- Movements: work writes them, and nobody changes one. Reports close the time that they show.
grant select on buyer_receipt_counters to farthing_console;
grant select on movements, movement_quarters, movement_balances to farthing_serve, farthing_console, farthing_work;
grant insert on movements to farthing_work;
grant insert, update (lines, amount, value, unvalued) on movement_quarters to farthing_work;
grant insert, update (received, reversed, refunded) on movement_balances to farthing_work;
grant select on movement_closings to farthing_work;
grant select, insert, delete on movements_due to farthing_work;
grant update (due_at, tries) on movements_due to farthing_work;
revoke execute on function close_movements from public;
grant execute on function close_movements to farthing_serve, farthing_console, farthing_operator;
grant select, insert, delete, update (name, delimiter, decimal, dates, has_mark, columns) on report_mappings
  to farthing_console;

-- Refunds: what is asked for and handed out to be signed. What became of it is for work to say.
grant select, insert on refunds, refund_totals to farthing_serve, farthing_console;
grant update (idempotency_key, body_hash, slot, nonce, signed_at, cancel_asked_at, transaction_hash, declared, failure,
  is_watched, status, version, ended_at) on refunds to farthing_serve, farthing_console;
grant update (named_at, looked_at, said_by) on refunds to farthing_serve, farthing_console;
grant update (payment_id, store_id, reserved) on refund_totals to farthing_serve, farthing_console;
grant select, insert on address_requests to farthing_serve, farthing_console;
grant update (token_hash, actor, made_at, expires_at, address, browser_hash, code, named_at) on address_requests
  to farthing_serve, farthing_console;
-- Only a member confirms who receives a refund.
grant update (recipient) on refunds to farthing_console;
grant update (confirmed_at, confirmed_by) on address_requests to farthing_console;
-- Which settlers are running: a refund on Solana names the one that pays its fee.
grant select (network, address, state, alive_at, elsewhere) on settlers to farthing_console;
grant select on restores, store_gas to farthing_console;
grant update (signature, valid_after, valid_before, is_contract, settler, refund_id, pay_to, amount, sends, spent_block_number,
  spent_block_hash, spent_reason, failed_at) on authorizations to farthing_serve;
grant insert, update (store_id, state, reason, claimed_at, resolved_at, is_credited, signature, valid_after, valid_before,
  is_contract, settler, refund_id, pay_to, amount, sends, spent_block_number, spent_block_hash, spent_reason, failed_at)
  on authorizations to farthing_console;

-- For the operator's screens, which show counts and ages across stores.
grant select on settler_gas, node_faults, node_hours, node_limits, audit_runs to farthing_serve;
grant select (network, wallet, day) on audit_days to farthing_serve;
grant select (kind, resolved_at) on audit_findings to farthing_serve;
grant select (day, changed_at) on audit_changes to farthing_serve;
grant select (id, item, tries) on movements_due to farthing_serve;
grant select (id, created_at) on mails to farthing_serve;

-- For the mail that tells owners of a change of wallet.
grant select (store_id, role, member_id) on memberships to farthing_serve;
grant select (id, email) on members to farthing_serve;
grant insert (id, about, key_id, sealed, due_at, created_at), select (id) on mails to farthing_serve, farthing_console;
grant select, insert, update (day, count) on mail_counts to farthing_serve, farthing_work, farthing_console;
grant select, insert, update (mailed_at, mails) on mail_recipients to farthing_serve, farthing_console;
grant select, insert, update (day, count) on deployment_mail_counts to farthing_serve;
grant select, insert, update (mailed_at, mails), delete on mail_recipients to farthing_work;
grant select, insert, update (hour, bytes) on event_bytes to farthing_serve, farthing_console;
grant select, insert, update (day, count) on member_mail_counts to farthing_console;
grant select, insert on wallet_changes to farthing_serve;
grant update (ended_at, made, made_at, confirmed_by, previous_id, next_id) on wallet_changes to farthing_serve;

-- work: settling, following chains, expiry, deliveries, rates. It cannot change where a store is paid, what a checkout
-- offers or who may act for a store, and reads no key, no session and of members only their addresses.
grant select on checkouts, stores, wallets, wallet_changes to farthing_work;
grant update (cancel_at) on wallet_changes to farthing_work;
grant update (status, version, page_version) on checkouts to farthing_work;
grant update (revision) on stores to farthing_work;
grant update (elsewhere, released_at) on wallets to farthing_work;
grant select, insert on events to farthing_work;
grant update (sequence) on events to farthing_work;
grant select, insert, update on authorizations, credits, settlers, transactions, transaction_calls, broadcasts,
  settler_gas, store_gas, followers, node_faults, payment_hints, token_accounts, restores, schedules
  to farthing_work;
grant select, insert, update, delete on blocks, rates, deliveries, delivery_attempts, rollup_days to farthing_work;
grant select, insert on foreign_nonces to farthing_work;
grant select, insert, update on rollup_cursors, rollup_quarters to farthing_work;
grant select, insert, update on refunds, refund_totals to farthing_work;
grant select on address_requests to farthing_work;
grant delete on followers to farthing_work;
grant select, insert, update, delete on payment_notes, node_hours, node_limits to farthing_work;
grant select, update on reserved_amounts, pasted_transactions, event_counters to farthing_work;
grant select, update (looked_at, outcome) on lookups to farthing_work;
grant select, insert (id, about, key_id, sealed, due_at, created_at), update, delete on mails to farthing_work;
grant select, insert, update on alert_cursors, payment_mail_cursors to farthing_work;
-- For the mails that tell members what was paid and what needs them.
grant select (store_id, role, member_id, muted_alerts, payment_mails, stop_token) on memberships to farthing_work;
grant select (id, email) on members to farthing_work;
grant select on event_log, network_looks to farthing_work;
grant select, delete on decisions to farthing_work;
grant update (decided_at, outcome) on decisions to farthing_work;
revoke execute on function acting_role from public;
grant execute on function acting_role to farthing_work;
grant select, delete on idempotency_keys to farthing_work;
grant update (created_at) on idempotency_keys to farthing_work;
grant select, delete on webhook_endpoints to farthing_work;
grant update (secrets, disabled_at, disabled_reason, failing_since, held_until, due_at) on webhook_endpoints to farthing_work;

-- console: members and how they sign in, and which wallet is current. Of the stores it sees one at a time
-- (src/database/rights.ts).
grant select, insert, update, delete on members, memberships, passkeys, sessions, challenges, invitations, identities,
  recovery_codes, email_changes to farthing_console;
grant select on stores, checkouts, credits, authorizations, payment_hints, payment_notes, pasted_transactions, reserved_amounts, decisions,
  events, event_log, event_counters, deliveries, delivery_attempts, transactions, transaction_calls, blocks, followers,
  rates, token_accounts, rollup_cursors, rollup_quarters, rollup_days, payment_notes to farthing_console;
grant select (hash, network, settler, nonce, created_at, first_sent_at, last_sent_at, taken_at, unfunded_at, refusal)
  on broadcasts to farthing_console;
grant insert on events to farthing_console;
-- A payment link, and the decisions that work applies.
grant insert on checkouts to farthing_console;
grant update (status, version, page_version) on checkouts to farthing_console;
grant select, insert on idempotency_keys to farthing_console;
grant insert (id, store_id, payment_id, kind, checkout_id, note, actor, created_at, due_at, together, session_id),
  update (id, note, actor, due_at, together, session_id), delete on decisions to farthing_console;
grant update (name, logo_url, accent_color, finality_policy, revision, support_email, support_url, legal_name,
  legal_address, tax_id, time_zone, report_currency, wallet_changes, manager_refund_limit, proven_at) on stores to farthing_console;
grant select, update on wallet_changes to farthing_console;
grant select on wallets to farthing_console;
-- An owner puts a wallet to use, stops using it, proves it, or says that somebody else holds its keys.
grant update (registration, retired_at, custodial_type, challenge, challenge_expires_at, proven_at, unowned)
  on wallets to farthing_console;
-- Keys without the hashes of their secrets, and endpoints. Rolling a secret and moving an endpoint keep the one before, so
-- they take reading the secrets, which are sealed; lists never do.
grant select (id, store_id, label, scopes, addresses, last_used_at, created_at, expires_at, revoked_at),
  insert (id, store_id, secret_hash, created_at, label, scopes, addresses), update (revoked_at)
  on api_keys to farthing_console;
grant select (id, store_id, url, format, types, is_ordered, secrets, created_at, disabled_at, disabled_reason, deleted_at,
    failing_since, held_until, due_at),
  insert (id, store_id, url, format, types, is_ordered, secrets, created_at, disabled_at, disabled_reason, deleted_at),
  update (url, types, is_ordered, secrets, disabled_at, disabled_reason, deleted_at, failing_since, held_until, due_at)
  on webhook_endpoints to farthing_console;
grant insert (id, store_id, endpoint_id, event_id, sequence, run_at, is_security),
  update (state, tries, run_at, finished_at) on deliveries to farthing_console;

-- The console also opens stores for whoever signs up, and operators decide there which stores may create checkouts.
grant select, insert, update, delete on sign_ups to farthing_console;
grant insert on stores, wallets, wallet_changes to farthing_console;
grant update (admission, suspended_at, suspended_reason) on stores to farthing_console;
grant insert (store_id) on event_counters to farthing_console;
grant insert, update on token_accounts to farthing_console;

-- Retention. work deletes what is over by a function of the owner, so it cannot delete anything else. What must never count
-- again is read where credits are written and where signatures are presented.
grant select on kept_credits to farthing_serve, farthing_work;
grant select on truncated_logs to farthing_serve, farthing_work, farthing_console;
revoke execute on function delete_over from public;
grant execute on function delete_over to farthing_work;
revoke execute on function delete_links_over from public;
grant execute on function delete_links_over to farthing_work;

-- audit: compares the books with the chains. It reads who paid whom, and what, and writes only what it found, so whoever takes
-- it can hide a finding and make one up, but no payment. work, which writes payments, writes no finding.
grant select (id, mode) on stores to farthing_audit;
grant select (store_id, pay_to, family, created_at, retired_at, released_at, proven_at, registration, unowned, elsewhere)
  on wallets to farthing_audit;
grant select (id, store_id, status, created_at, options) on checkouts to farthing_audit;
grant select (network, transaction_hash, asset, payer, pay_to, amount, block_time, orphaned_at, checkout_id, store_id,
    payment_id)
  on credits to farthing_audit;
grant select on kept_credits, audit_accepts to farthing_audit;
grant select, delete, update (changed_at) on audit_changes to farthing_audit;
grant select, insert, update (received, sent, balance, credits, credited, checked_at) on audit_days to farthing_audit;
grant select, insert, update (amount, resolved_at) on audit_findings to farthing_audit;
grant select, insert, update (ran_at, calls, trouble, trouble_since) on audit_runs to farthing_audit;
-- Members read what it found, say what they know of it, and ask for a look at a transaction.
grant select on audit_findings to farthing_console;
grant select (network, wallet, day, received) on audit_days to farthing_console;
grant select (network, ran_at, trouble_since) on audit_runs to farthing_console;
grant select, insert on audit_explanations to farthing_console;
grant select, insert (network, transaction_hash, asked_at, outcome), update (asked_at, looked_at, outcome)
  on lookups to farthing_console;
grant select, insert, update (run_at, leased_until, attempt) on schedules to farthing_audit;
