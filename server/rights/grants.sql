-- What each role may do. `migrate` applies this file in one transaction whenever it has changed; docs/roles.md shows the
-- result, made from a migrated database. Locking a row takes the right to update one of its columns.
grant usage on schema public to farthing_serve, farthing_work, farthing_console, farthing_operator;
revoke all on all tables in schema public from farthing_serve, farthing_work, farthing_console, farthing_operator;

grant select, insert, update, delete on all tables in schema public to farthing_operator;
revoke insert, update, delete on schema_migrations, granted_rights from farthing_operator;
grant select on schema_migrations to farthing_serve, farthing_work, farthing_console;

-- serve: what the API and the payment page do. It cannot write what a checkout's status is computed from (credits), nor
-- anything that a settler signs, and reads no signed bytes, no passkey and no session.
grant select, insert on checkouts to farthing_serve;
grant update (status, version, page_version) on checkouts to farthing_serve;
grant select on decisions to farthing_serve;
grant insert (id, store_id, payment_id, kind, checkout_id, actor, created_at) on decisions to farthing_serve;
-- Rights to insert single columns would cost a twentieth of a create.
grant select, insert on events, authorizations, idempotency_keys, reserved_amounts, pasted_transactions,
  wallets, webhook_endpoints, api_keys, deliveries to farthing_serve;
grant update (id) on decisions to farthing_serve;
grant update (checkout_id, store_id, state, reason, claimed_at, resolved_at, is_credited)
  on authorizations to farthing_serve;
grant update (cools_until, freed_at) on reserved_amounts to farthing_serve;
grant update (outcome, pasted_at, looked_at) on pasted_transactions to farthing_serve;
grant update (name, logo_url, accent_color, finality_policy, revision, support_email, support_url)
  on stores to farthing_serve;
grant update (registration, retired_at, custodial_type, challenge, challenge_expires_at, proven_at, shared_elsewhere)
  on wallets to farthing_serve;
grant update (url, types, is_ordered, secrets, disabled_at, disabled_reason, deleted_at, failing_since, held_until, due_at)
  on webhook_endpoints to farthing_serve;
grant update (expires_at, revoked_at, last_used_at) on api_keys to farthing_serve;
grant update (state, attempt, run_at, leased_until, tries, finished_at) on deliveries to farthing_serve;
grant select, insert, update on token_accounts to farthing_serve;
grant select on stores, credits, blocks, followers, settlers, transactions, transaction_calls, rates, restores,
  payment_hints, store_gas, event_counters, event_log, delivery_attempts to farthing_serve;
grant select (hash, network, settler, nonce, created_at, first_sent_at, last_sent_at, taken_at, unfunded_at, refusal)
  on broadcasts to farthing_serve;

-- For the mail that tells owners of a change of wallet.
grant select (store_id, role, member_id) on memberships to farthing_serve;
grant select (id, email) on members to farthing_serve;
grant insert (id, about, key_id, sealed, due_at, created_at), select (id) on mails to farthing_serve, farthing_console;
grant select, insert on wallet_changes to farthing_serve;
grant update (ended_at, made, made_at, confirmed_by, previous_id, next_id) on wallet_changes to farthing_serve;

-- work: settling, following chains, expiry, deliveries, rates. It cannot change where a store is paid, what a checkout
-- offers or who may act for a store, and reads no key, no member and no session.
grant select on checkouts, stores, wallets, wallet_changes to farthing_work;
grant update (cancel_at) on wallet_changes to farthing_work;
grant update (status, version, page_version) on checkouts to farthing_work;
grant update (revision) on stores to farthing_work;
grant select, insert on events to farthing_work;
grant update (sequence) on events to farthing_work;
grant select, insert, update on authorizations, credits, settlers, transactions, transaction_calls, broadcasts,
  settler_gas, store_gas, followers, node_faults, payment_hints, token_accounts, restores, schedules
  to farthing_work;
grant select, insert, update, delete on blocks, rates, deliveries, delivery_attempts to farthing_work;
grant delete on followers to farthing_work;
grant select, update on reserved_amounts, pasted_transactions, event_counters to farthing_work;
grant select, update, delete on mails to farthing_work;
grant select on event_log to farthing_work;
grant select, delete on decisions to farthing_work;
grant update (decided_at, outcome) on decisions to farthing_work;
grant select, delete on idempotency_keys to farthing_work;
grant update (created_at) on idempotency_keys to farthing_work;
grant select, delete on webhook_endpoints to farthing_work;
grant update (secrets, disabled_at, disabled_reason, failing_since, held_until, due_at) on webhook_endpoints to farthing_work;

-- console: members and how they sign in, and which wallet is current. Of the stores it sees one at a time
-- (src/database/rights.ts).
grant select, insert, update, delete on members, memberships, passkeys, sessions, challenges, invitations, identities
  to farthing_console;
grant select on stores to farthing_console;
grant insert on events to farthing_console;
grant update (revision, wallet_changes) on stores to farthing_console;
grant select, update on wallet_changes to farthing_console;
grant select on wallets, token_accounts to farthing_console;
grant update (registration, retired_at) on wallets to farthing_console;
