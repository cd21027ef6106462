import assert from 'node:assert/strict'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import type { FairQueue } from '../../database/fair-queue.ts'
import { type CheckoutId, isId } from '../../ids.ts'
import { isWithin } from '../../links/check.ts'
import { type Link, statusOf } from '../../links/link.ts'
import { checkoutIdIn, readQuote } from '../../links/quote.ts'
import type { Payment } from '../../payments/payload.ts'
import { invalid, Problem } from '../../problems.ts'
import type { Draft } from '../create-claimed.ts'
import { type PayAnswer, type PayEngine, type PayRequest, payQuoted, type Quoted } from '../pay.ts'
import {
  type DraftOfQuote,
  draftFrom,
  findMade,
  insertOpened,
  isShared,
  type Opening,
  quoteLink,
  readOpening,
} from './open.ts'

/**
 * How a program pays a link at its address, by x402. Asking for the terms writes nothing: they carry a quote in `extra`, which
 * x402 clients send back with the payment, and the checkout is made together with the claim of a good payment
 * (checkouts/create-claimed.ts).
 *
 * A payment that was claimed before finds its outcome, however old its quote is. Otherwise its quote must be this link's, as
 * the link is now, or the id of a checkout that is there. Everything else is answered with new terms.
 */
export type PayLink = (linkId: string, request: LinkRequest) => Promise<PayAnswer>

type LinkRequest = PayRequest & {
  /** What the buyer chooses to pay, in the link's currency; null if nothing is said. */
  readonly amount: string | null
}

/** Each means that the link or its store changed meanwhile. */
const triesMax = 5

const outdated = 'quote_outdated'

/** Opened once per process. */
export function openPayLink(ctx: Context, engine: PayEngine, queue: FairQueue): PayLink {
  return async (linkId, request) => {
    for (let attempt = 0; attempt < triesMax; attempt++) {
      const opening = await readOpening(ctx, linkId)
      if (!opening) throw new Problem('not_found', 'No such link.')
      const { checkoutId, quoted } = await choose(ctx, queue, opening, request)
      const answer = await payQuoted(ctx, engine, checkoutId, request, quoted)
      if (answer !== 'changed') return answer
    }
    throw new Problem(
      'unavailable',
      'The link kept changing. Repeat the same request with the same payment.',
      {
        retryAfterSeconds: 1,
      },
    )
  }
}

type Choice = { readonly checkoutId: CheckoutId; readonly quoted: Quoted }

/** The checkout that the request is about, whether it is there or would be made. */
async function choose(
  ctx: Context,
  queue: FairQueue,
  opening: Opening,
  { payment, amount }: LinkRequest,
): Promise<Choice> {
  const { link } = opening
  const presented = payment.kind === 'present' ? payment : null
  const known = presented && (await findClaimed(ctx.db, link, presented.payment))
  if (known) return about(known)
  const status = statusOf(link)
  if (status === 'PAID') throw new Problem('already_paid', 'The link is already paid. Nothing was charged.')
  const now = ctx.now()
  const quote = presented && (presented.quote ?? '')
  const read = quote === null ? null : readQuote(ctx, link, quote)
  const isGood = read !== null && read.until > now
  if (isShared(link)) {
    const isMeant = quote === null || isGood || quote === link.checkoutId
    return about(link.checkoutId, isMeant ? null : outdated)
  }
  const named = quote !== null && (isGood || isId('ch', quote)) ? checkoutIdIn(quote) : null
  const made = await findMade(ctx.db, link, named)
  if (made) return about(made)
  if (status === 'CLOSED')
    throw new Problem('link_closed', 'The store closed this link. Nothing was charged.')
  if (status === 'ENDED')
    throw new Problem(
      'link_ended',
      `This link could be paid until ${link.until.toISOString()}. Nothing was charged.`,
    )
  try {
    const given = isGood && quote !== null ? draftFrom(ctx, opening, { quote, amount }, now) : null
    if (given && !('kind' in given) && quote !== null) return toMake(ctx, queue, opening, { ...given, quote })
    return await offerAnew(ctx, queue, opening, { amount, refused: quote === null ? null : outdated }, now)
  } catch (error) {
    throw error instanceof Problem && unpayable.has(error.code) ? unpayableProblem() : error
  }
}

/** The checkout of this link for which the authorization was claimed. */
async function findClaimed(
  db: Database,
  { id }: Link,
  { network, asset, payer, nonce }: Payment,
): Promise<CheckoutId | null> {
  const [row] = await db.query<{ id: CheckoutId }>(
    `select c.id from authorizations a join checkouts c on c.id = a.checkout_id
     where a.network = $1 and a.asset = $2 and a.payer = $3 and a.nonce = $4 and c.link_id = $5`,
    [network, asset, payer, nonce, id],
  )
  return row?.id ?? null
}

/** A checkout that is there. Its id is quote enough: it says itself what it costs and until when. */
function about(checkoutId: CheckoutId, refused: string | null = null): Choice {
  return { checkoutId, quoted: { quote: checkoutId, until: null, draft: null, refused } }
}

function toMake(
  ctx: Context,
  queue: FairQueue,
  opening: Opening,
  {
    checkout,
    until,
    quote,
    refused = null,
  }: DraftOfQuote & { readonly quote: string; readonly refused?: string | null },
): Choice {
  const draft: Draft = {
    checkout,
    db: queue.of(ctx.db, checkout.storeId),
    insert: async (tx) => (await insertOpened(ctx, tx, opening, checkout))?.inserted ?? null,
  }
  return { checkoutId: checkout.id, quoted: { quote, until, draft, refused } }
}

async function offerAnew(
  ctx: Context,
  queue: FairQueue,
  opening: Opening,
  { amount, refused }: { readonly amount: string | null; readonly refused: string | null },
  now: Date,
): Promise<Choice> {
  const { price, priceCurrency } = opening.link
  if ('min' in price && !isWithin(amount ?? '', price))
    throw invalid({
      pointer: 'amount',
      code: 'amount',
      detail: `Choose what to pay, from ${price.min} to ${price.max} ${priceCurrency}: ?amount=${price.max}.`,
    })
  const quote = await quoteLink(ctx, opening, amount, now)
  const drafted = draftFrom(ctx, opening, { quote, amount }, now)
  assert(!('kind' in drafted), 'a link does not take its own quote')
  return toMake(ctx, queue, opening, { ...drafted, quote, refused })
}

/** Refusals about the store, whose advice is for the store. */
const unpayable: ReadonlySet<string> = new Set(['store_inactive', 'wallet_required'])

function unpayableProblem(): Problem {
  return new Problem(
    'settlement_unavailable',
    'The store of this link can’t be paid right now. Nothing was charged.',
    { retryAfterSeconds: 60 },
  )
}
