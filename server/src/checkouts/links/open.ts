import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { type FairQueue, openFairQueue } from '../../database/fair-queue.ts'
import { type CheckoutId, isId, newId } from '../../ids.ts'
import { isWithin } from '../../links/check.ts'
import { type Link, statusOf } from '../../links/link.ts'
import {
  checkoutIdIn,
  hashOffers,
  type LinkQuote,
  quoteMs,
  readQuote,
  writeQuote,
} from '../../links/quote.ts'
import { lockOpened, noteMade, type OpenedLink, readOpened } from '../../links/rows.ts'
import { parseDecimal } from '../../money.ts'
import { Problem } from '../../problems.ts'
import { quoteCurrency } from '../../rates/quote.ts'
import { holdStore, listCurrent, readStore } from '../../stores/rows.ts'
import type { Checkout } from '../checkout.ts'
import {
  asNew,
  composeCheckout,
  insertCheckouts,
  listOptions,
  refuseUnproven,
  requirePayable,
  type Seller,
} from '../create.ts'
import { restoringProblem } from '../pay.ts'
import { type CheckoutRow, moveCheckouts, toCheckout } from '../rows.ts'

/**
 * How a buyer gets from a link to a checkout. Opening the link reads (`readOpening`) and quotes (`quoteLink`). When the
 * buyer goes on to pay, `openLink` creates the quoted checkout, or finds it. What the link, its store and the chains
 * allow is checked again when it is inserted.
 *
 * A `once` link has one checkout that can be paid. Under the link's lock it is replaced only when it is EXPIRED or
 * CANCELED, and everybody else gets the one that is there. A `many` link has one for each quote.
 */
export type Opening = { readonly link: OpenedLink; readonly seller: Seller }

/**
 * The most open checkouts of a `many` link. It bounds the rows that people cost who open a link and leave. No store has
 * more buyers paying by one link at once.
 */
const openMax = 200
/** How many of a store's links are opened at once, per process: each waits for the lock of its link. */
const atOnce = 2
const waitingMax = 200
/** Another try is needed only if the link or its store changed after it was read. */
const triesMax = 5
const lockTimeoutMs = 5_000

/** Null if there is no such link. */
export async function readOpening(ctx: Context, linkId: string): Promise<Opening | null> {
  const link = isId('lnk', linkId) ? await readOpened(ctx.db, linkId) : null
  if (!link) return null
  const [store, wallets] = await Promise.all([
    readStore(ctx.db, link.storeId),
    listCurrent(ctx.db, link.storeId),
  ])
  return store && { link, seller: { store, wallets } }
}

/** What the link offers now, as text to be sent back. Throws a Problem if its store can't be paid. */
export async function quoteLink(
  ctx: Context,
  { link, seller }: Opening,
  chosen: string | null,
  now: Date,
): Promise<string> {
  requirePayable(ctx, seller)
  const priceAmount = priceOf(link, chosen)
  const rate = await quoteCurrency(ctx, link.priceCurrency, now)
  const quote = { checkoutId: newId('ch', ctx.config.cell, now), priceAmount, rate }
  const offers = offersOf(ctx, { link, seller }, quote)
  return writeQuote(ctx, link, { ...quote, offers, until: new Date(now.getTime() + quoteMs) })
}

/** The link's price, or the buyer's if the buyer chooses. */
function priceOf({ price }: Link, chosen: string | null): string | null {
  return 'amount' in price ? price.amount : chosen
}

function offersOf(
  ctx: Context,
  { link, seller }: Opening,
  { priceAmount, rate }: Pick<LinkQuote, 'priceAmount' | 'rate'>,
): string {
  const price = priceAmount ?? ('amount' in link.price ? link.price.amount : link.price.min)
  return hashOffers(listOptions(ctx, seller, parseDecimal(price), rate))
}

type Opened =
  | { readonly kind: 'checkout'; readonly checkoutId: CheckoutId }
  /** The quote's time is over, or it is not what the link offers now. */
  | { readonly kind: 'outdated' }
  /** The amount is not one that the buyer may choose. */
  | { readonly kind: 'amount' }
  /** The link can no longer be paid. */
  | { readonly kind: 'over' }

export type OpenLink = (
  opening: Opening,
  asked: { readonly quote: string; readonly amount: string | null },
  now: Date,
) => Promise<Opened>

/** The queue in which the buyers of each store wait, in one process. */
export function openLinkQueue(): FairQueue {
  return openFairQueue(atOnce, waitingMax)
}

/** Opened once per process. */
export function openOpenLink(ctx: Context, queue: FairQueue): OpenLink {
  return async (opening, asked, now) => {
    const known = await findMade(ctx.db, opening.link, checkoutIdIn(asked.quote))
    if (known) return { kind: 'checkout', checkoutId: known }
    let current: Opening | null = opening
    for (let attempt = 0; current && attempt < triesMax; attempt++) {
      const { link, seller } = current
      if (isShared(link)) return { kind: 'checkout', checkoutId: link.checkoutId }
      if (statusOf(link) !== 'ACTIVE') return { kind: 'over' }
      const draft = draftFrom(ctx, current, asked, now)
      if ('kind' in draft) return draft
      const db = queue.of(ctx.db, link.storeId)
      const made = await db.transaction((tx) => insertOpened(ctx, tx, { link, seller }, draft.checkout))
      if (made) return { kind: 'checkout', checkoutId: made.id }
      current = await readOpening(ctx, link.id)
    }
    return { kind: 'outdated' }
  }
}

/** Whether everybody who opens the link gets this checkout. */
export function isShared(link: OpenedLink): link is OpenedLink & { readonly checkoutId: CheckoutId } {
  const { checkoutId, sharedStatus } = link
  return checkoutId !== null && sharedStatus !== null && !['EXPIRED', 'CANCELED'].includes(sharedStatus)
}

/**
 * The checkout that was made of a quote with this id. Anyone who knows the id may see the checkout, no matter for whom
 * the quote was made.
 */
export async function findMade(
  db: Database | Transaction,
  { id }: Link,
  checkoutId: CheckoutId | null,
): Promise<CheckoutId | null> {
  if (!checkoutId) return null
  const rows = await db.query('select 1 as one from checkouts where id = $1 and link_id = $2', [
    checkoutId,
    id,
  ])
  return rows.length > 0 ? checkoutId : null
}

/** The checkout drafted from a quote, and when the quote expires. Its order id is set when it is inserted. */
export type DraftOfQuote = { readonly checkout: Checkout; readonly until: Date }

export function draftFrom(
  ctx: Context,
  opening: Opening,
  { quote: text, amount }: { readonly quote: string; readonly amount: string | null },
  now: Date,
): DraftOfQuote | Exclude<Opened, { kind: 'checkout' | 'over' }> {
  const { link, seller } = opening
  requirePayable(ctx, seller)
  const quote = readQuote(ctx, link, text)
  if (!quote || quote.until <= now || offersOf(ctx, opening, quote) !== quote.offers)
    return { kind: 'outdated' }
  const priceAmount = quote.priceAmount ?? amount ?? ''
  if ('min' in link.price && !isWithin(priceAmount, link.price)) return { kind: 'amount' }
  const { id: linkId, title, invoice, metadata, priceCurrency, until } = link
  const wanted = {
    ...{ id: quote.checkoutId, linkId, orderId: invoice?.number ?? linkId, description: title, metadata },
    ...{ priceAmount, priceCurrency, rate: quote.rate, successRedirectUrl: null, cancelUrl: null },
  }
  const checkout = composeCheckout(ctx, seller, wanted, { now })
  const expiresAt = checkout.expiresAt < until ? checkout.expiresAt : until
  return { checkout: { ...checkout, expiresAt }, until: quote.until }
}

/**
 * Inserts the checkout under the lock of its link. Returns the checkout that the buyer gets, inserted now or found, or
 * null if something has changed since it was drafted.
 */
export async function insertOpened(
  ctx: Context,
  tx: Transaction,
  { link: before, seller: { store } }: Opening,
  draft: Checkout,
): Promise<{ readonly id: CheckoutId; readonly inserted: Checkout | null } | null> {
  const link = await lockOpened(tx, before.id)
  if (!link || link.revision !== before.revision || statusOf(link) !== 'ACTIVE') return null
  if (isShared(link)) return { id: link.checkoutId, inserted: null }
  if (await isRestoring(tx, draft)) throw restoringProblem()
  if (store.isLimited) {
    if ((await holdStore(tx, store.id)) !== store.revision) return null
    await refuseUnproven(ctx, tx, draft)
  }
  await makeRoom(ctx, tx, link, draft.createdAt)
  const orderId = link.invoice?.number ?? `${link.id}-${link.made + 1}`
  const inserted: Checkout = { ...draft, orderId }
  const row = { ...asNew(ctx, inserted, store), actor: null, idempotency: null }
  if ((await insertCheckouts(tx, [row], lockTimeoutMs)).size === 0) {
    const id = await findMade(tx, link, draft.id)
    return id && { id, inserted: null }
  }
  await noteMade(tx, link, draft.id)
  return { id: draft.id, inserted }
}

/** Whether a network that the checkout offers is still being compared with the database. */
async function isRestoring(tx: Transaction, { options }: Checkout): Promise<boolean> {
  const networks = options.map(({ network }) => network)
  const rows = await tx.query(
    'select 1 as one from restores where finished_at is null and network = any($1) limit 1',
    [networks],
  )
  return rows.length > 0
}

/**
 * Strangers may open a link any number of times. Beyond `openMax`, the oldest checkout that nobody has begun to pay
 * makes room: one without a reserved amount and without money.
 */
async function makeRoom(ctx: Context, tx: Transaction, link: Link, now: Date): Promise<void> {
  if (link.kind === 'once') return
  const open = `select * from checkouts c where c.link_id = $1 and c.status = 'OPEN' and c.expires_at > clock()`
  const full = await tx.query(`${open} limit 1 offset $2`, [link.id, openMax - 1])
  if (full.length === 0) return
  const idle = await tx.query<CheckoutRow>(
    `${open} and not exists (select 1 from reserved_amounts r where r.checkout_id = c.id)
       and not exists (select 1 from credits k where k.checkout_id = c.id)
     order by c.id limit 1 for update of c skip locked`,
    [link.id],
  )
  if (idle.length === 0)
    throw new Problem('rate_limited', 'Too many buyers are paying by this link. Try again later.', {
      retryAfterSeconds: 60,
    })
  await moveCheckouts(ctx, tx, idle.map(toCheckout), { status: 'CANCELED' }, now)
}
