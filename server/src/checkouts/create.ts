import assert from 'node:assert/strict'
import type { CreateCheckout, FinalityRule } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { openBatcher } from '../database/batch.ts'
import { isLockTimeout, type Transaction } from '../database/db.ts'
import { openFairQueue } from '../database/fair-queue.ts'
import { type CheckoutId, firstIdAt, newId } from '../ids.ts'
import { type Decimal, parseDecimal, parsePrice } from '../money.ts'
import { invalid, type Mistake, Problem } from '../problems.ts'
import { parseCurrency } from '../rates/iso4217.ts'
import { priceInUnits, type Quote, quoteCurrency } from '../rates/quote.ts'
import type { Caller } from '../stores/authenticate.ts'
import { checkText, checkWebUrl } from '../stores/check-text.ts'
import { holdStore } from '../stores/rows.ts'
import { requireStanding } from '../stores/standing.ts'
import { networksFor, type Store, walletFor, walletSegment } from '../stores/store.ts'
import { type Checkout, descriptionBytesMax, type Option, orderIdBytesMax, toWire } from './checkout.ts'
import { checkoutExists, findFullSince, insertCheckouts, type NewCheckout, readStoredAnswer } from './rows.ts'

/** A price that needs no rate can't drift. A rate is guaranteed for only an hour. */
const lifetimeSeconds = 86_400
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
  const { storeId, createdAt } = row.checkout
  const { unprovenCheckoutsPerHour: perHour, cell } = ctx.config
  return await insertAlone(ctx, row, async (tx) => {
    // The store may have proven a wallet meanwhile. Then nothing is inserted, and the checkout is drafted again.
    if ((await holdStore(tx, storeId)) !== row.revision) return
    const since = firstIdAt('ch', cell, new Date(createdAt.getTime() - hourMs))
    const full = await findFullSince(tx, storeId, since, perHour)
    if (full === null) return
    throw new Problem(
      'rate_limited',
      `A store that has not proven a wallet creates at most ${perHour} checkouts per hour. Prove the wallet to lift the limit.`,
      { retryAfterSeconds: Math.max(1, Math.ceil((full.getTime() + hourMs - createdAt.getTime()) / 1_000)) },
    )
  })
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
  ]
  if (!price || !priceCurrency || mistakes.length > 0) throw invalid(...mistakes)
  requireStanding(store)

  const quote = await quoteCurrency(ctx, priceCurrency, now)
  const options = networksFor(ctx, store.mode).flatMap((network) => {
    const wallet = walletFor(network, wallets)
    if (!wallet) return []
    return network.assets.map(
      (asset): Option => ({
        network: network.caip2,
        asset: asset.address,
        amount: offeredUnits(price, quote, asset.decimals).toString(),
        payTo: wallet.address,
      }),
    )
  })
  if (options.length === 0) throw walletRequired(ctx, store, wallets.length > 0)

  const lifetime = input.expiresInSeconds ?? (quote ? lifetimeWithRateSeconds : lifetimeSeconds)
  const checkout: Checkout = {
    id: newId('ch', ctx.config.cell, now),
    storeId: store.id,
    orderId: input.orderId,
    priceAmount: input.priceAmount,
    priceCurrency,
    successRedirectUrl,
    cancelUrl,
    description,
    metadata,
    rate: quote,
    options,
    finality: finalityFor(store.finalityPolicy, priceInUnits(price, quote, policyDecimals)),
    status: 'OPEN',
    version: 1,
    createdAt: now,
    expiresAt: new Date(now.getTime() + lifetime * 1_000),
  }
  return {
    checkout,
    revision: store.revision,
    eventId: newId('evt', ctx.config.cell, now),
    actor,
    idempotency,
    answer: JSON.stringify(toWire(ctx, checkout)),
  }
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

/** Enough for ids and references of other systems. Every event of the checkout contains them. */
export const metadataKeysMax = 20
const metadataKeyBytesMax = 40
export const metadataValueCharactersMax = 500
/** UTF-8 takes up to four bytes for a character. */
const valueBytesMax = 4 * metadataValueCharactersMax

/** The schema has already checked number, type and length of the values. */
function checkMetadata(pointer: string, metadata: Readonly<Record<string, string>>): Mistake[] {
  return Object.entries(metadata).flatMap(([key, value]) => {
    const at = `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    return [
      ...checkText(at, key, metadataKeyBytesMax).map((mistake) => ({
        ...mistake,
        detail: `The name: ${mistake.detail}`,
      })),
      ...(value === '' ? [] : checkText(at, value, valueBytesMax)),
    ]
  })
}
