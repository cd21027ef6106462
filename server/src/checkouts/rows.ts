import assert from 'node:assert/strict'
import type { Actor, CheckoutPayment, CheckoutStatus } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { type CheckoutId, newId, type StoreId } from '../ids.ts'
import { creditFromJson, creditJson, type RawCredit, toCheckoutPayment } from '../payments/credits/credit.ts'
import type { Quote } from '../rates/quote.ts'
import { arrow, type Checkout, type Option, storeFacts, toStoreWire } from './checkout.ts'

type Reader = Database | Transaction

export type CheckoutRow = {
  id: CheckoutId
  store_id: StoreId
  order_id: string
  price_amount: string
  price_currency: string
  success_redirect_url: string | null
  cancel_url: string | null
  description: string | null
  metadata: Record<string, string> | null
  rate: (Omit<Quote, 'asOf'> & { asOf: string }) | null
  options: Option[]
  finality: Checkout['finality']
  status: CheckoutStatus
  version: number
  created_at: Date
  expires_at: Date
}

/** A checkout about to be inserted, with its event and, if the request has an Idempotency-Key, the answer to keep. */
export type NewCheckout = {
  readonly checkout: Checkout
  /** The store's revision from which the checkout was computed. */
  readonly revision: number
  readonly eventId: string
  readonly actor: Actor
  readonly idempotency: { readonly route: string; readonly key: string; readonly bodyHash: string } | null
  /** The response body, a JSON object. It is stored byte for byte and becomes part of the event. */
  readonly answer: string
}

type StoredAnswer = {
  readonly resourceId: CheckoutId
  readonly bodyHash: string
  readonly body: string
}

/**
 * The input of the inserting statement. Each column is one parameter, with its values joined by `separator`. PostgreSQL
 * splits that far more cheaply than it parses JSON, which would be a third of its work for a create.
 */
const inputs: readonly (readonly [
  name: string,
  type: string,
  read: (row: NewCheckout) => string | null | undefined,
])[] = [
  ['id', 'text', ({ checkout }) => checkout.id],
  ['store_id', 'text', ({ checkout }) => checkout.storeId],
  ['revision', 'integer', ({ revision }) => String(revision)],
  ['order_id', 'text', ({ checkout }) => checkout.orderId],
  ['price_amount', 'text', ({ checkout }) => checkout.priceAmount],
  ['price_currency', 'text', ({ checkout }) => checkout.priceCurrency],
  ['success_redirect_url', 'text', ({ checkout }) => checkout.successRedirectUrl],
  ['cancel_url', 'text', ({ checkout }) => checkout.cancelUrl],
  ['options', 'json', ({ checkout }) => JSON.stringify(checkout.options)],
  ['rate', 'json', ({ checkout: { rate } }) => rate && JSON.stringify(rate)],
  ['facts', 'text', ({ checkout }) => factsText(checkout)],
  ['finality', 'text', ({ checkout }) => checkout.finality],
  ['created_at', 'timestamptz', ({ checkout }) => checkout.createdAt.toISOString()],
  ['expires_at', 'timestamptz', ({ checkout }) => checkout.expiresAt.toISOString()],
  ['event_id', 'text', ({ eventId }) => eventId],
  ['actor', 'json', ({ actor }) => JSON.stringify(actor)],
  ['key_id', 'text', ({ actor }) => (actor.type === 'key' ? actor.id : null)],
  ['route', 'text', ({ idempotency }) => idempotency?.route],
  ['key', 'text', ({ idempotency }) => idempotency?.key],
  ['body_hash', 'text', ({ idempotency }) => idempotency?.bodyHash],
  ['answer', 'text', ({ answer }) => answer],
]

/**
 * All rarely used fields in one input, because each further input would cost every create. The event contains it as it
 * is, and the columns take their values from it.
 */
function factsText(checkout: Checkout): string | null {
  const text = JSON.stringify(storeFacts(checkout))
  return text === '{}' ? null : text
}

/** The unit separator. No value contains it: ours contain no control characters, and a store's are refused. */
const separator = '\u001f'
const separatorSql = "E'\\x1f'"

/** All values of a batch for one column. An empty one means null. */
function joinColumn(
  batch: readonly NewCheckout[],
  read: (row: NewCheckout) => string | null | undefined,
): string {
  return batch
    .map((row) => {
      const value = read(row) ?? null
      // A separator in a value would shift the values of other checkouts, and an empty value would become null.
      assert(value === null || (value !== '' && !value.includes(separator)), 'a value cannot be joined')
      return value ?? ''
    })
    .join(separator)
}

// The planner expects ten rows. "is true" keeps it from comparing every row of a batch with every other.
const insertSql = `with patience as materialized (
       select set_config('lock_timeout', $${inputs.length + 1}, true)
     ), input as (
       select ${inputs.map(([name, type]) => (type === 'text' ? `i.${name}` : `i.${name}::${type}`)).join(', ')}
       from patience, unnest(${inputs.map((_, i) => `string_to_array($${i + 1}, ${separatorSql}, '')`).join(', ')})
         as i (${inputs.map(([name]) => name).join(', ')})
       join stores s on s.id = i.store_id and s.revision = i.revision::integer
       where i.key_id is null or exists (select 1 from api_keys k where k.id = i.key_id and k.revoked_at is null
         and (k.expires_at is null or k.expires_at > clock()))
     ), keyed as (
       insert into idempotency_keys (store_id, route, key, body_hash, resource_id, answer, created_at)
       select store_id, route, key, decode(body_hash, 'base64'), id, answer, created_at
       from input where key is not null
       order by store_id, route, key
       on conflict do nothing
       returning resource_id
     ), made as (
       insert into checkouts (id, store_id, order_id, price_amount, price_currency, success_redirect_url, cancel_url,
                              options, rate, finality, status, version, created_at, expires_at, description, metadata)
       select id, store_id, order_id, price_amount, price_currency, success_redirect_url, cancel_url,
              options, rate, finality, 'OPEN', 1, created_at, expires_at,
              facts::json ->> 'description', facts::json -> 'metadata'
       from input where key is null or id in (select resource_id from keyed)
       on conflict do nothing
       returning id
     ), told as (
       insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at, actor)
       select event_id, store_id, 'checkout.created', id, 1,
              ('{"checkout":' || left(answer, -1) || coalesce(',' || substr(left(facts, -1), 2), '')
                || ',"payment":null}}')::json, created_at, actor
       from input where (id in (select id from made)) is true
     )
     select id from made`

/**
 * Inserts a batch in one statement: the idempotency row first, the checkout only if that row is ours, the event only if
 * the checkout is. Returns the ids inserted by this call. A row is skipped if its Idempotency-Key is taken, if its id
 * exists (from our own earlier try), if its store has changed since it was computed, or if its API key was revoked.
 * Idempotency-Keys are inserted in order, because two batches that wait for each other's keys would deadlock. If
 * another transaction holds a key, the statement waits up to `lockTimeoutMs`, which applies to this transaction only.
 */
export async function insertCheckouts(
  db: Reader,
  batch: readonly NewCheckout[],
  lockTimeoutMs: number,
): Promise<Set<CheckoutId>> {
  const rows = await db.query<{ id: CheckoutId }>(insertSql, [
    ...inputs.map(([, , read]) => joinColumn(batch, read)),
    String(lockTimeoutMs),
  ])
  return new Set(rows.map(({ id }) => id))
}

/** The answer to the first request with this key, byte for byte. */
export async function readStoredAnswer(
  db: Reader,
  storeId: StoreId,
  route: string,
  key: string,
): Promise<StoredAnswer | null> {
  const [row] = await db.query<{ resource_id: CheckoutId; body_hash: string; body: string }>(
    `select resource_id, encode(body_hash, 'base64') as body_hash, answer as body from idempotency_keys
     where store_id = $1 and route = $2 and key = $3`,
    [storeId, route, key],
  )
  return row ? { resourceId: row.resource_id, bodyHash: row.body_hash, body: row.body } : null
}

/**
 * When the oldest of the store's last `count` checkouts was created, among those with ids after `since`; null if there
 * are fewer.
 */
export async function findFullSince(
  tx: Transaction,
  storeId: StoreId,
  since: CheckoutId,
  count: number,
): Promise<Date | null> {
  const [row] = await tx.query<{ created_at: Date }>(
    'select created_at from checkouts where store_id = $1 and id > $2 order by id desc offset $3 limit 1',
    [storeId, since, count - 1],
  )
  return row?.created_at ?? null
}

/** Deletes answers that no client can still be waiting for. */
export async function deleteOldAnswers(db: Database, keptHours: number, limit: number): Promise<number> {
  const [row] = await db.query<{ deleted: number }>(
    `with deleted as (
       delete from idempotency_keys where ctid = any (array(
         select ctid from idempotency_keys
         where created_at < clock() - make_interval(hours => $1) limit $2 for update skip locked
       )) returning 1
     )
     select count(*)::int as deleted from deleted`,
    [keptHours, limit],
  )
  return row?.deleted ?? 0
}

export async function checkoutExists(db: Reader, checkoutId: CheckoutId): Promise<boolean> {
  return (await db.query('select 1 as found from checkouts where id = $1', [checkoutId])).length > 0
}

export const storeColumns = `c.*, (
    select ${creditJson('k')} from credits k where k.checkout_id = c.id and k.disposition = 'exact' and k.orphaned_at is null
  ) as credit, exists (select 1 from refunds r where r.checkout_id = c.id) as has_refunds`

export type StoreColumns = CheckoutRow & { credit: RawCredit | null; has_refunds: boolean }

export function toStoreRow(row: StoreColumns): StoreRow {
  return {
    checkout: toCheckout(row),
    payment: row.credit && toCheckoutPayment(creditFromJson(row.credit)),
    hasRefunds: row.has_refunds,
  }
}

export type StoreRow = {
  readonly checkout: Checkout
  readonly payment: CheckoutPayment | null
  readonly hasRefunds: boolean
}

export async function readCheckout(
  db: Reader,
  storeId: StoreId,
  checkoutId: string,
): Promise<StoreRow | null> {
  const [row] = await db.query<StoreColumns>(
    `select ${storeColumns} from checkouts c where c.id = $2 and c.store_id = $1`,
    [storeId, checkoutId],
  )
  return row ? toStoreRow(row) : null
}

export async function lockCheckout(
  tx: Transaction,
  storeId: StoreId,
  checkoutId: string,
): Promise<{ checkout: Checkout; isPastExpiry: boolean } | null> {
  const [row] = await tx.query<CheckoutRow & { is_past_expiry: boolean }>(
    'select *, expires_at <= clock() as is_past_expiry from checkouts where id = $2 and store_id = $1 for update',
    [storeId, checkoutId],
  )
  return row ? { checkout: toCheckout(row), isPastExpiry: row.is_past_expiry } : null
}

/**
 * Changes the status of checkouts: status, version and event in one statement. The caller holds their row locks, so a
 * version mismatch is a bug.
 */
export async function moveCheckouts(
  ctx: Context,
  tx: Transaction,
  checkouts: readonly Checkout[],
  to: {
    status: CheckoutStatus
    payments?: ReadonlyMap<CheckoutId, CheckoutPayment | null>
    /** Who asked for the change. Absent if time or the chain caused it. */
    actor?: Actor
  },
  now: Date,
): Promise<Checkout[]> {
  const moves = checkouts.map((before) => {
    const checkout: Checkout = { ...before, status: to.status, version: before.version + 1 }
    const input = {
      id: checkout.id,
      status: checkout.status,
      version: checkout.version,
      event_id: newId('evt', ctx.config.cell, now),
      type: arrow(before.status, to.status).event,
      data: { checkout: toStoreWire(ctx, checkout, to.payments?.get(checkout.id) ?? null) },
      created_at: now,
      ...(to.actor && { actor: to.actor }),
    }
    return { checkout, input }
  })
  const [row] = await tx.query<{ moved: number }>(
    `with input as (
       select * from json_to_recordset($1) as i (
         id text, status text, version integer, event_id text, type text, data json, created_at timestamptz, actor json)
     ), moved as (
       update checkouts c set status = i.status, version = i.version
       from input i where c.id = i.id and c.version = i.version - 1
       returning c.store_id, i.*
     ), told as (
       insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at, actor)
       select event_id, store_id, type, id, version, data, created_at, actor from moved
     )
     select count(*)::int as moved from moved`,
    [JSON.stringify(moves.map(({ input }) => input))],
  )
  assert.equal(row?.moved, moves.length)
  return moves.map(({ checkout }) => checkout)
}

/** Marks checkouts whose pages have something new to show. */
export async function notePagesChanged(tx: Transaction, checkoutIds: readonly string[]): Promise<void> {
  if (checkoutIds.length === 0) return
  await tx.query('update checkouts set page_version = page_version + 1 where id = any($1)', [checkoutIds])
}

/**
 * SQL condition: whether a network that checkout `c` offers is still being compared with the database after a restore.
 * Until then the checkout may already be paid there although it is OPEN, so no payer is asked to pay it on any network.
 */
export const isRestoringSql = `exists (select 1 from restores r, json_array_elements(c.options) o
  where r.finished_at is null and r.network = o ->> 'network')`

export function toCheckout(row: CheckoutRow): Checkout {
  return {
    id: row.id,
    storeId: row.store_id,
    orderId: row.order_id,
    priceAmount: row.price_amount,
    priceCurrency: row.price_currency,
    successRedirectUrl: row.success_redirect_url,
    cancelUrl: row.cancel_url,
    description: row.description,
    metadata: row.metadata,
    rate: row.rate && { ...row.rate, asOf: new Date(row.rate.asOf) },
    options: row.options,
    finality: row.finality,
    status: row.status,
    version: row.version,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}
