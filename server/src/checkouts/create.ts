import assert from 'node:assert/strict'
import type { Actor, CreateCheckout, FinalityRule } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { openBatcher } from '../database/batch.ts'
import { type Database, isLockTimeout, type Transaction } from '../database/db.ts'
import { openFairQueue } from '../database/fair-queue.ts'
import { type CheckoutId, firstIdAt, newId, type StoreId } from '../ids.ts'
import { type Decimal, parseDecimal, parsePrice } from '../money.ts'
import { invalid, type Mistake, Problem } from '../problems.ts'
import { parseCurrency } from '../rates/iso4217.ts'
import { priceInUnits, type Quote, quoteCurrency } from '../rates/quote.ts'
import type { Caller } from '../stores/authenticate.ts'
import { checkMetadata, checkText, checkWebUrl } from '../stores/check-text.ts'
import { holdStore } from '../stores/rows.ts'
import { requireStanding } from '../stores/standing.ts'
import { networksFor, payToOn, type Store, walletSegment } from '../stores/store.ts'
import {
  type Checkout,
  descriptionBytesMax,
  type Option,
  orderIdBytesMax,
  storeFacts,
  toWire,
} from './checkout.ts'

/** A price that needs no rate can't drift. A rate is guaranteed for only an hour. */
const lifetimeSecondsDefault = 86_400
const lifetimeWithRateSeconds = 3_600
const hourMs = 3_600_000
/** Measured on 2 cores: two batches of up to 128 keep the database busy, and more only add waiting time. */
const batchRowsMax = 128
const batchesInFlightMax = 2
/** A separate commit for one or two rows costs the database as much as ten more rows in the next one. */
const furtherRowsMin = 32
/** A key held by another request must not stall a whole batch. After this time, its rows are inserted one by one. */
const batchLockTimeoutMs = 200
/** How long a request waits for another one with the same Idempotency-Key. */
const lockTimeoutMs = 5_000
/**
 * How many creates of one store may run in their own transaction, per process. Each may wait for the lock of the store
 * or of an Idempotency-Key, and they must not hold all connections meanwhile.
 */
const aloneAtOnce = 2
const aloneWaitingMax = 100
/** How often a create starts over because its store changed. Each time means another change by the store's owner. */
const revisionTriesMax = 5

/** Refusals that may be out of date, because the store was read from a cache. */
const momentary: ReadonlySet<string> = new Set(['wallet_required', 'store_inactive'])

export type IdempotencyKey = {
  readonly route: string
  readonly key: string
  /** SHA-256 of the body, in base64. */
  readonly bodyHash: string
}

type Created = {
  readonly id: CheckoutId
  /** The response body: a repeated request gets exactly the same bytes. */
  readonly body: string
  readonly isReplay: boolean
}

/** The caller who creates a checkout: a key's holder, or a member of the store. */
export type Creator = Pick<Caller, 'actor'> & { readonly holder: Pick<Caller['holder'], 'store' | 'wallets'> }

export type CreateCheckoutVerb<Who extends Creator = Caller> = (
  caller: Who,
  input: CreateCheckout,
  idempotency: IdempotencyKey | null,
  now: Date,
) => Promise<Created>

/**
 * Opened once per process, because creates share group commits. `refresh` reads a caller again after its store may have
 * changed.
 */
export function openCreateCheckout<Who extends Creator = Caller>(
  ctx: Context,
  { refresh }: { readonly refresh: (caller: Who) => Promise<Who> },
): CreateCheckoutVerb<Who> {
  const queue = openFairQueue(aloneAtOnce, aloneWaitingMax)
  const queued = ({ checkout }: NewCheckout) => ({ ...ctx, db: queue.of(ctx.db, checkout.storeId) })
  const insert = openBatcher<NewCheckout, boolean>({
    run: async (batch) => {
      const made = await insertCheckouts(ctx.db, batch, batchLockTimeoutMs)
      return batch.map(({ checkout }) => made.has(checkout.id))
    },
    runAlone: (row) => insertAlone(queued(row), row),
    itemsMax: batchRowsMax,
    inFlightMax: batchesInFlightMax,
    furtherItemsMin: furtherRowsMin,
    observe: (rows) => ctx.metrics.batchRows.observe({ statement: 'create' }, rows),
  })

  return async (caller, input, idempotency, now) => {
    let current = caller
    for (let attempt = 0; attempt < revisionTriesMax; attempt++) {
      const { store } = current.holder
      // A stored answer stays valid, even if the request would be refused now.
      const draft = await draftCheckout(ctx, current, input, idempotency, now).catch(async (problem) => {
        const replay = await findReplay(ctx, store, idempotency)
        if (replay) return replay
        // The cached store may lack a wallet that was registered, or an approval that was given, a moment ago.
        if (attempt === 0 && problem instanceof Problem && momentary.has(problem.code)) return null
        throw problem
      })
      if (draft) {
        if ('isReplay' in draft) return draft
        if (store.isLimited) {
          const replay = await findReplay(ctx, store, idempotency)
          if (replay) return replay
        }
        crashPoint(ctx, 'create-before')
        const isMade = store.isLimited ? await insertLimited(queued(draft), draft) : await insert(draft)
        crashPoint(ctx, 'create-after')
        if (isMade) return { id: draft.checkout.id, body: draft.answer, isReplay: false }
        const replay = await findReplay(ctx, store, idempotency)
        if (replay) return replay
      }
      current = await refresh(current)
    }
    throw new Problem(
      'unavailable',
      'The store’s settings kept changing while the checkout was being created. Repeat the request.',
      {
        retryAfterSeconds: 1,
      },
    )
  }
}

/** Creates one at a time, counting the store's checkouts of the last hour. Only stores with limits take this way. */
async function insertLimited(ctx: Context, row: NewCheckout): Promise<boolean> {
  const { storeId } = row.checkout
  return await insertAlone(ctx, row, async (tx) => {
    // The store may have proven a wallet meanwhile. Then nothing is inserted, and the checkout is drafted again.
    if ((await holdStore(tx, storeId)) === row.revision) await refuseUnproven(ctx, tx, row.checkout)
  })
}

/**
 * Refuses the checkout if the store has not proven a wallet and has reached its limit per hour. Checkouts that buyers
 * make by opening links are counted separately, so a stranger can't use up the store's own limit.
 */
export async function refuseUnproven(
  ctx: Context,
  tx: Transaction,
  { storeId, linkId, createdAt }: Checkout,
): Promise<void> {
  const { unprovenCheckoutsPerHour: perHour, cell } = ctx.config
  const since = firstIdAt('ch', cell, new Date(createdAt.getTime() - hourMs))
  const full = await findFullSince(tx, storeId, since, { count: perHour, isByLink: linkId !== null })
  if (full === null) return
  throw new Problem(
    'rate_limited',
    `A store that has not proven a wallet creates at most ${perHour} checkouts per hour. Prove the wallet to lift the limit.`,
    { retryAfterSeconds: Math.max(1, Math.ceil((full.getTime() + hourMs - createdAt.getTime()) / 1_000)) },
  )
}

async function insertAlone(
  ctx: Context,
  row: NewCheckout,
  prepare: (tx: Transaction) => Promise<void> = async () => {},
): Promise<boolean> {
  return await ctx.db
    .transaction(async (tx) => {
      await prepare(tx)
      if ((await insertCheckouts(tx, [row], lockTimeoutMs)).size > 0) return true
      // The failed batch may have committed after all. Then this row is ours.
      return await checkoutExists(tx, row.checkout.id)
    })
    .catch((error) => {
      if (!isLockTimeout(error)) throw error
      throw new Problem(
        'idempotency_in_progress',
        'Another request with this Idempotency-Key is still running.',
        {
          retryAfterSeconds: 1,
        },
      )
    })
}

async function findReplay(
  ctx: Context,
  store: Store,
  idempotency: IdempotencyKey | null,
): Promise<Created | null> {
  if (!idempotency) return null
  const stored = await readStoredAnswer(ctx.db, store.id, idempotency.route, idempotency.key)
  if (!stored) return null
  if (stored.bodyHash !== idempotency.bodyHash) {
    throw new Problem(
      'idempotency_key_reused',
      'This Idempotency-Key belongs to a request with a different body.',
    )
  }
  ctx.metrics.idempotentReplays.inc()
  return { id: stored.resourceId, body: stored.body, isReplay: true }
}

/** Computes everything about a checkout before it is written. */
async function draftCheckout(
  ctx: Context,
  { actor, holder: { store, wallets } }: Creator,
  input: CreateCheckout,
  idempotency: IdempotencyKey | null,
  now: Date,
): Promise<NewCheckout> {
  const price = parsePrice(input.priceAmount)
  const priceCurrency = parseCurrency(input.priceCurrency)
  const { successRedirectUrl = null, cancelUrl = null, description = null } = input
  const metadata = input.metadata && Object.keys(input.metadata).length > 0 ? input.metadata : null
  const mistakes: Mistake[] = [
    ...checkText('/orderId', input.orderId, orderIdBytesMax),
    ...(price
      ? []
      : [
          {
            pointer: '/priceAmount',
            code: 'amount',
            detail:
              'Must be a decimal above zero, such as "12.50", with at most 15 digits before the point and 6 after it.',
          },
        ]),
    ...(priceCurrency
      ? []
      : [{ pointer: '/priceCurrency', code: 'currency', detail: 'Must be an ISO 4217 code, such as USD.' }]),
    ...(successRedirectUrl === null
      ? []
      : checkWebUrl('/successRedirectUrl', successRedirectUrl, store.mode)),
    ...(cancelUrl === null ? [] : checkWebUrl('/cancelUrl', cancelUrl, store.mode)),
    ...(description === null ? [] : checkText('/description', description, descriptionBytesMax)),
    ...(metadata === null ? [] : checkMetadata('/metadata', metadata)),
    ...checkLifetime(store, input.expiresInSeconds),
  ]
  if (!price || !priceCurrency || mistakes.length > 0) throw invalid(...mistakes)
  requirePayable(ctx, { store, wallets })

  const rate = await quoteCurrency(ctx, priceCurrency, now)
  const checkout = composeCheckout(
    ctx,
    { store, wallets },
    {
      ...{ id: newId('ch', ctx.config.cell, now), linkId: null, orderId: input.orderId },
      ...{ priceAmount: input.priceAmount, priceCurrency, rate },
      ...{ successRedirectUrl, cancelUrl, description, metadata },
    },
    { lifetimeSeconds: input.expiresInSeconds, now },
  )
  return { ...asNew(ctx, checkout, store), actor, idempotency }
}

/** A buyer needs a few minutes. A test need not wait for them. */
const lifetimeSecondsMin = 300

function checkLifetime({ mode }: Pick<Store, 'mode'>, seconds: number | undefined): Mistake[] {
  if (seconds === undefined || mode === 'test' || seconds >= lifetimeSecondsMin) return []
  return [
    {
      pointer: '/expiresInSeconds',
      code: 'minimum',
      detail: `Must be at least ${lifetimeSecondsMin}, except for a test store.`,
    },
  ]
}

/** Builds a checkout from a checked price, its rate, and the store's current settings and wallets. */
export function composeCheckout(
  ctx: Context,
  { store, wallets }: Seller,
  wanted: Omit<
    Checkout,
    'storeId' | 'options' | 'finality' | 'status' | 'version' | 'createdAt' | 'expiresAt'
  >,
  { lifetimeSeconds, now }: { readonly lifetimeSeconds?: number | undefined; readonly now: Date },
): Checkout {
  const { rate, priceAmount } = wanted
  const price = parseDecimal(priceAmount)
  const lifetime = lifetimeSeconds ?? (rate ? lifetimeWithRateSeconds : lifetimeSecondsDefault)
  return {
    ...wanted,
    storeId: store.id,
    options: listOptions(ctx, { store, wallets }, price, rate),
    finality: finalityFor(store.finalityPolicy, priceInUnits(price, rate, policyDecimals)),
    status: 'OPEN',
    version: 1,
    createdAt: now,
    expiresAt: new Date(now.getTime() + lifetime * 1_000),
  }
}

/** The checkout as it is inserted, without its actor and idempotency key. */
export function asNew(
  ctx: Context,
  checkout: Checkout,
  { revision }: Pick<Store, 'revision'>,
): Omit<NewCheckout, 'actor' | 'idempotency'> {
  const eventId = newId('evt', ctx.config.cell, checkout.createdAt)
  return { checkout, revision, eventId, answer: JSON.stringify(toWire(ctx, checkout)) }
}

export type Seller = Creator['holder']

/** Throws a Problem unless the store may create checkouts, and has a wallet that they can be paid to. */
export function requirePayable(ctx: Context, { store, wallets }: Seller): void {
  requireStanding(store)
  if (!networksFor(ctx, store.mode).some((network) => payToOn(network, { store, wallets })))
    throw walletRequired(ctx, store, wallets.length > 0)
}

/** The ways to pay a price: one for each token of each network that the store has a wallet for. */
export function listOptions(
  ctx: Context,
  { store, wallets }: Seller,
  price: Decimal,
  quote: Quote | null,
): Option[] {
  return networksFor(ctx, store.mode).flatMap((network) => {
    const payTo = payToOn(network, { store, wallets })
    if (payTo === null) return []
    return network.assets.map(
      (asset): Option => ({
        network: network.caip2,
        asset: asset.address,
        amount: offeredUnits(price, quote, asset.decimals).toString(),
        payTo,
      }),
    )
  })
}

/** People may have to type an amount, so it has at most this many decimal places, whatever its token has. */
const offeredDecimals = 6

/** Rounded up, so a store never gets less than its price. */
function offeredUnits(price: Decimal, quote: Quote | null, decimals: number): bigint {
  return priceInUnits(price, quote, offeredDecimals) * 10n ** BigInt(decimals - offeredDecimals)
}

/** A finality policy names amounts in US dollars with at most 6 decimal places. */
const policyDecimals = 6

function finalityFor(policy: readonly FinalityRule[], units: bigint): FinalityRule['finality'] {
  const rule = policy.findLast(({ minAmount }) => {
    const { coefficient, scale } = parseDecimal(minAmount)
    return coefficient * 10n ** BigInt(policyDecimals - scale) <= units
  })
  assert(rule, 'a finality policy starts at zero')
  return rule.finality
}

function walletRequired(ctx: Context, store: Store, hasWallet: boolean): Problem {
  const segment = walletSegment(networksFor(ctx, store.mode))
  const address = `${ctx.config.baseUrl}/api/v1/stores/${store.id}/wallets/${segment}`
  return new Problem(
    'wallet_required',
    `${hasWallet ? 'None of the store’s wallets is payable right now; GET its wallets for the reasons. ' : ''}${store.walletChanges === 'member' ? 'If one waits for confirmation, an owner confirms it in the console. ' : ''}Register the wallet that payments should go to: POST ${address} with the same X-API-Key, Content-Type: application/json and the body {"walletAddress":"<your address>","custodialType":"NON_CUSTODIAL"}.`,
  )
}

/** A checkout about to be inserted, with its event and, if the request has an Idempotency-Key, the answer to keep. */
export type NewCheckout = {
  readonly checkout: Checkout
  /** The store's revision from which the checkout was computed. */
  readonly revision: number
  readonly eventId: string
  /** Null for a buyer, who opens a link. */
  readonly actor: Actor | null
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
  ['actor', 'json', ({ actor }) => actor && JSON.stringify(actor)],
  ['key_id', 'text', ({ actor }) => (actor?.type === 'key' ? actor.id : null)],
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
                              options, rate, finality, status, version, created_at, expires_at, description, metadata,
                              link_id)
       select id, store_id, order_id, price_amount, price_currency, success_redirect_url, cancel_url,
              options, rate, finality, 'OPEN', 1, created_at, expires_at,
              facts::json ->> 'description', facts::json -> 'metadata', facts::json ->> 'linkId'
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
  db: Database | Transaction,
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
  db: Database | Transaction,
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
async function findFullSince(
  tx: Transaction,
  storeId: StoreId,
  since: CheckoutId,
  { count, isByLink }: { readonly count: number; readonly isByLink: boolean },
): Promise<Date | null> {
  const [row] = await tx.query<{ created_at: Date }>(
    `select created_at from checkouts where store_id = $1 and id > $2 and (link_id is not null) = $4
     order by id desc offset $3 limit 1`,
    [storeId, since, count - 1, isByLink],
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

export async function checkoutExists(db: Database | Transaction, checkoutId: CheckoutId): Promise<boolean> {
  return (await db.query('select 1 as found from checkouts where id = $1', [checkoutId])).length > 0
}
