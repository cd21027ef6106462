import assert from 'node:assert/strict'
import type { PaymentRequired, PaymentRequirements, Payment as WirePayment } from '@farthing/sdk'
import { toShown, toStored } from '../chains/families.ts'
import { readFollower } from '../chains/rows.ts'
import { isNodeError } from '../chains/rpc.ts'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { isId } from '../ids.ts'
import { idOfNetwork } from '../networks.ts'
import { toPayment } from '../payments/credits/credit.ts'
import type { Budgets, Places } from '../payments/limits.ts'
import { noteLook } from '../payments/looks.ts'
import { isBoundPayment, type Payment, type ReadPayment } from '../payments/payload.ts'
import { type Prepared, type Rails, toTerms } from '../payments/rail.ts'
import type { Issuer } from '../payments/receipts.ts'
import { inFlightMax, readInFlight } from '../payments/rows.ts'
import {
  costPerDay,
  NotReadyError,
  nextDay,
  type Readiness,
  whyRestoring,
} from '../payments/settlers/readiness.ts'
import { Problem } from '../problems.ts'
import { type Checkout, describeCheckout, toStoreWire } from './checkout.ts'
import type { ClaimPayment } from './claim.ts'
import { createClaimed, type Draft } from './create-claimed.ts'
import { type Outcomes, type PayView, type ReadPayView, readDraftView } from './pay-view.ts'

/** Everything that a request to pay needs. Opened once per process. */
export type PayEngine = {
  readonly rails: Rails
  readonly view: ReadPayView
  readonly claim: ClaimPayment
  readonly outcomes: Outcomes
  readonly readiness: Readiness
  readonly budgets: Budgets
  readonly places: Places
  /** Null if offers and receipts are not signed. */
  readonly issuer: Issuer | null
}

/** The answer to a request to pay. Refusals other than a 402 are thrown as Problems. */
export type PayAnswer =
  | { readonly kind: 'required'; readonly required: PaymentRequired; readonly refused: Refused | null }
  | { readonly kind: 'paid'; readonly checkout: Checkout; readonly payment: WirePayment }
  | {
      readonly kind: 'pending'
      readonly checkout: Checkout
      readonly transaction: string
      readonly network: string
      readonly payer: string
    }

type Refused = {
  readonly reason: string
  readonly message: string | undefined
  readonly network: string
  readonly payer: string
}

export type PayRequest = {
  readonly resourceUrl: string
  readonly payment: ReadPayment
  /** The client's address, to slow it down after too many bad payments. */
  readonly address: string
  /** How long to wait for an outcome; as long as a payer does unless told. */
  readonly patienceMs?: number
}

/** How a link asks for a payment (links/pay.ts). */
export type Quoted = {
  /** What the terms carry, so that it comes back with the payment. */
  readonly quote: string
  /** Until when the terms hold; null for as long as the checkout can be paid. */
  readonly until: Date | null
  /** The checkout to make if there is none of that id; null if there is one. */
  readonly draft: Draft | null
  /** Why the payment's own quote is not taken; null if it is, or if there is no payment. */
  readonly refused: string | null
}

/** If payers had to wait longer, a proxy in between might cut them off. */
const settleTimeoutMs = 25_000
/**
 * Inclusion in a block may not be enough to complete a checkout, and changes no version, so waiting requests check this
 * often.
 */
const inclusionLookMs = 2_000
/** How long an authorization waits for the outcome of another one. */
const otherTimeoutMs = 5_000
/** A node may seem behind once, if a block arrives while it answers. If it seems so more often, it is behind. */
const lagsMax = 2
/** Another round means that somebody else changed the checkout in the meantime. */
const roundsMax = 20

export async function payCheckout(
  ctx: Context,
  engine: PayEngine,
  checkoutId: string,
  request: PayRequest,
): Promise<PayAnswer> {
  const answer = await payQuoted(ctx, engine, checkoutId, request, null)
  assert(answer !== 'changed', 'only a draft changes before it is made')
  return answer
}

/**
 * Answers a request to pay. The steps are tried in a fixed order on fresh reads, and the first that applies answers.
 * After every wait, claim or refusal they start again from the top, because a duplicate must see the outcome of its
 * twin. A 402 invites the payer to sign, so it is sent only while the checkout is OPEN. A checkout is never OPEN while
 * anything committed for sending may still move money.
 *
 * Returns `changed` if the quote's draft may not be made any more. Then nothing was written.
 */
export async function payQuoted(
  ctx: Context,
  engine: PayEngine,
  checkoutId: string,
  request: PayRequest,
  quoted: Quoted | null,
): Promise<PayAnswer | typeof changed> {
  const attempt = openAttempt(ctx, request, quoted)
  try {
    for (let round = 0; round < roundsMax; round++) {
      const view = await readRound(ctx, engine, checkoutId, attempt)
      if (!view) throw new Problem('not_found', 'No such checkout.')
      const step =
        (await answerByAuthorization(ctx, engine, view, attempt)) ??
        (await answerByStatus(ctx, engine, view, attempt)) ??
        (await answerWithTerms(ctx, engine, view, attempt)) ??
        (await claimPayment(ctx, engine, view, attempt))
      if (step !== again) return step
    }
    throw new Problem('unavailable', 'The checkout is busy. Repeat the same request with the same payment.', {
      retryAfterSeconds: 1,
    })
  } finally {
    attempt.freePlace?.()
  }
}

async function readRound(
  { db }: Context,
  { view }: PayEngine,
  checkoutId: string,
  { payment, quoted }: Attempt,
): Promise<Round | null> {
  const found = isId('ch', checkoutId) ? await view({ checkoutId, payment }) : null
  if (found) return { ...found, draft: null }
  const draft = quoted?.draft
  const planned = draft && (await readDraftView(db, draft.checkout, payment))
  return planned ? { ...planned, draft } : null
}

type Round = PayView & {
  /** The checkout, while it does not exist. */
  readonly draft: Draft | null
}

/** A step changed something or waited for a change, so the next round starts from a fresh read. */
const again = 'again'

const changed = 'changed'

/** An answer, or `again` for another round, or null if this step does not apply. */
type Step = Promise<PayAnswer | typeof again | null>

/** The progress of one request to pay. */
type Attempt = {
  readonly request: PayRequest
  /** Null for a request to a checkout, which needs no quote. */
  readonly quoted: Quoted | null
  /** Null if the request has no payment, or an unreadable one. */
  readonly payment: Payment | null
  readonly giveUpAt: number
  /** Until when to wait for another payment in progress. Null while there is none. */
  otherUntil: number | null
  /** Why the payment cannot settle. The next round answers with it, unless another payer has paid meanwhile. */
  refused: Refused | null
  hasClaimed: boolean
  isFailureNoted: boolean
  /** How often a node that we asked was behind the chain. */
  lags: number
  /** Frees the place taken before a payment is checked against the chain. Called when its request is answered. */
  freePlace: (() => void) | null
}

function openAttempt(ctx: Context, request: PayRequest, quoted: Quoted | null): Attempt {
  const payment = request.payment.kind === 'present' ? request.payment.payment : null
  return {
    request,
    quoted,
    payment,
    giveUpAt: ctx.now().getTime() + (request.patienceMs ?? settleTimeoutMs),
    otherUntil: null,
    refused: payment && quoted?.refused ? refusal(payment, quoted.refused) : null,
    hasClaimed: false,
    isFailureNoted: false,
    lags: 0,
    freePlace: null,
  }
}

/** Applies if this authorization was presented before, or if its identifier names another one. */
async function answerByAuthorization(ctx: Context, engine: PayEngine, view: PayView, attempt: Attempt): Step {
  const { checkout, known, isIdentifierTaken } = view
  const { payment } = attempt
  if (payment && known?.checkoutId === checkout.id) {
    const step = await answerByFate(ctx, engine, checkout, { known, payment }, attempt)
    if (step) return step
  } else if (known && !(known.checkoutId === null && payment && isBoundPayment(payment, checkout.id))) {
    throw new Problem(
      'authorization_used',
      known.checkoutId === null
        ? 'This authorization was already used, and we cannot tell for which checkout. Ask the store before you pay again.'
        : 'This authorization was already presented for another checkout.',
    )
  }
  if (attempt.quoted?.refused && view.isUsed)
    throw new Problem(
      'authorization_used',
      'This authorization was already used, and we cannot tell for which checkout. Ask the store before you pay again.',
    )
  if (isIdentifierTaken)
    throw new Problem(
      'payment_identifier_reused',
      'This payment-identifier already names another payment to this store.',
    )
  return null
}

/** Applies if this authorization was claimed for this checkout. Its outcome is the answer. */
async function answerByFate(
  ctx: Context,
  engine: PayEngine,
  checkout: Checkout,
  { known, payment }: { readonly known: NonNullable<PayView['known']>; readonly payment: Payment },
  attempt: Attempt,
): Step {
  const noteFailure = () => engine.budgets.noteFailure(payment.payer, attempt.request.address)
  const isLate = () => ctx.now().getTime() >= attempt.giveUpAt
  if (known.hasFailed && !known.credit && attempt.hasClaimed && !attempt.isFailureNoted) {
    attempt.isFailureNoted = true
    noteFailure()
  }
  if (known.credit?.disposition === 'exact') {
    if (checkout.status !== 'COMPLETED') {
      // It is in a block, but not as final as the store requires, or too few nodes have reported it.
      if (known.credit.counts || isLate()) return pending(checkout, payment, known.credit.transaction)
      return await waitForFate(ctx, engine, checkout, checkout.version, attempt)
    }
    crashPoint(ctx, 'answer-before')
    return { kind: 'paid', checkout, payment: toPayment(known.credit) }
  }
  if (known.credit) throw notApplied(toPayment(known.credit))
  if (known.state === 'claimed' || known.state === 'sent') {
    if (isLate()) return pending(checkout, payment, known.transaction)
    return await waitForFate(ctx, engine, checkout, checkout.version, attempt)
  }
  if (attempt.hasClaimed) noteFailure()
  if (known.state === 'dead' || attempt.hasClaimed)
    attempt.refused = refusal(payment, known.reason ?? 'authorization_expired')
  return null
}

async function waitForFate(
  ctx: Context,
  engine: PayEngine,
  { id, finality }: Checkout,
  version: number,
  { giveUpAt }: Attempt,
): Promise<typeof again> {
  crashPoint(ctx, 'wait-before')
  const leftMs = giveUpAt - ctx.now().getTime()
  const patienceMs = finality === 'included' ? leftMs : Math.min(leftMs, inclusionLookMs)
  await engine.outcomes.waitForChange(id, version, patienceMs)
  crashPoint(ctx, 'wait-after')
  return again
}

/** Applies if the checkout is paid, is being paid by another payment, or is closed. */
async function answerByStatus(ctx: Context, engine: PayEngine, view: PayView, attempt: Attempt): Step {
  const { checkout } = view
  if (checkout.status === 'COMPLETED') {
    if (attempt.request.payment.kind !== 'none') throw closedProblem(checkout)
    if (view.payment) return { kind: 'paid', checkout, payment: toPayment(view.payment) }
    throw inProgress()
  }
  if (checkout.status === 'PROCESSING') {
    attempt.otherUntil ??= ctx.now().getTime() + otherTimeoutMs
    const leftMs = attempt.otherUntil - ctx.now().getTime()
    if (!attempt.payment || leftMs <= 0) throw inProgress()
    await engine.outcomes.waitForChange(checkout.id, checkout.version, leftMs)
    return again
  }
  if (checkout.status !== 'OPEN' || view.isPastExpiry) throw closedProblem(checkout)
  if (view.isRestoring) throw restoringProblem()
  // Mail scanners and previews ask for a link's terms, and leave nothing behind.
  if (attempt.payment || !attempt.quoted)
    noteLook(
      ctx,
      checkout.options.map(({ network }) => network),
    )
  return null
}

/**
 * Applies if the checkout is open and the request has no payment that may settle. The answer is the terms, and the
 * reason for the refusal.
 */
async function answerWithTerms(ctx: Context, engine: PayEngine, view: PayView, attempt: Attempt): Step {
  const { refused, request } = attempt
  if (attempt.payment && !refused) return null
  const error = refused?.reason ?? (request.payment.kind === 'none' ? request.payment.error : undefined)
  const required = await requirePayment(engine, view, attempt, error)
  if (request.payment.kind === 'unreadable') throw new MalformedPayment(required, request.payment.why)
  if (refused && !view.known) noteRefused(ctx, view.checkout, refused)
  return { kind: 'required', required, refused }
}

/** Checks the payment and claims it for the checkout. The next round answers with the outcome. */
async function claimPayment(
  ctx: Context,
  engine: PayEngine,
  view: Round,
  attempt: Attempt,
): Promise<typeof again | typeof changed> {
  const { checkout, draft } = view
  const { payment } = attempt
  assert(payment, 'a request without a payment is answered with the terms')
  crashPoint(ctx, 'verify-before')
  const verified = await verify(ctx, engine, view, payment, attempt)
  if (!verified.isValid) {
    if (!verified.isBehind) attempt.refused = refusal(payment, verified.reason, verified.message)
    else if (++attempt.lags > lagsMax) throw unsettled('The node that we queried is behind the chain.')
    return again
  }
  crashPoint(ctx, 'claim-before')
  const claim = {
    checkoutId: checkout.id,
    network: payment.network,
    transfer: verified.transfer,
    isBound: isBoundPayment(payment, checkout.id),
    identifier: payment.identifier,
    now: ctx.now(),
  }
  if (draft) {
    const created = await createClaimed(ctx, draft, claim)
    if (created === 'changed') return changed
    attempt.hasClaimed = created === 'claimed'
  } else {
    const processing = toStoreWire(ctx, { ...checkout, status: 'PROCESSING' }, null)
    attempt.hasClaimed = await engine.claim({ ...claim, data: { checkout: processing } })
  }
  crashPoint(ctx, 'claim-after')
  // The claim created the next version. If a newer one already exists, the wait returns at once.
  return attempt.hasClaimed ? await waitForFate(ctx, engine, checkout, checkout.version + 1, attempt) : again
}

/** Checks whether a payment would settle. A failure on our side becomes a 503, never a refusal of the payment. */
async function verify(
  ctx: Context,
  engine: PayEngine,
  { checkout, storeCost, isStoreLimited, restsUntil, inFlight: inFlightBefore, isUsed, headNumber }: PayView,
  payment: Payment,
  attempt: Attempt,
) {
  const { address } = attempt.request
  const rail = engine.rails.get(payment.network)
  const isOffered = checkout.options.some(({ network }) => network === payment.network)
  if (!isOffered) {
    engine.budgets.noteFailure(payment.payer, address)
    return { isValid: false, reason: 'invalid_network', isBehind: false } as const
  }
  if (!rail || rail.providers === 0) throw unsettled('This deployment has no node for that network.')
  const mismatch = await rail.verifier.findMismatch(checkout.id, checkout.options, payment, ctx.now())
  if (mismatch !== null) {
    engine.budgets.noteFailure(payment.payer, address)
    return { isValid: false, reason: mismatch, isBehind: false } as const
  }
  const offer = checkout.options.find(
    ({ network, asset }) =>
      network === payment.network && toStored(network, asset) === toStored(network, payment.asset),
  )
  assert(offer, 'a payment that matches the checkout is in an asset that it offers')
  const why = await engine.readiness(payment.network, { asset: payment.asset, units: BigInt(offer.amount) })
  if (why !== null) throw unsettled(why)
  const perDay = costPerDay(rail, isStoreLimited)
  if (perDay !== null && storeCost >= perDay) throw overQuota(ctx.now())
  if (restsUntil !== null) throw resting(restsUntil, ctx.now())
  const hasWaited = await engine.budgets.slowDown(payment.payer, address)
  const inFlight = hasWaited
    ? await readInFlight(ctx.db, payment.network, payment.asset, payment.payer)
    : inFlightBefore
  if (inFlight.payments > inFlightMax) throw tooManyInFlight()
  attempt.freePlace ??= engine.places.take()
  const known = { inFlightUnits: inFlight.units, isUsed, headNumber }
  const verified = await orUnsettled(
    rail.verifier.verify(checkout.id, checkout.options, payment, known, ctx.now()),
  )
  if (verified.isValid) return verified
  // A node that is behind our follower may not have seen the payer's money arrive.
  const follower = verified.blockNumber === null ? null : await readFollower(ctx.db, payment.network)
  const isBehind =
    follower !== null && verified.blockNumber !== null && verified.blockNumber < follower.headNumber
  if (!isBehind) engine.budgets.noteFailure(payment.payer, address)
  return { isValid: false, reason: verified.reason, message: verified.message, isBehind } as const
}

/** The transaction for the payer to sign, on networks where building it needs a node; null on all others. */
export async function preparePayment(
  { rails }: PayEngine,
  terms: PaymentRequirements,
  payer: string,
): Promise<Prepared | null> {
  const rail = rails.get(terms.network)
  const prepare = rail && rail.providers > 0 ? rail.verifier.prepare : undefined
  return prepare ? await orUnsettled(prepare(terms, payer)) : null
}

async function orUnsettled<Answer>(asked: Promise<Answer>): Promise<Answer> {
  try {
    return await asked
  } catch (cause) {
    if (cause instanceof NotReadyError) throw unsettled(cause.message, cause)
    if (!isNodeError(cause)) throw cause
    throw unsettled('The chain cannot be queried right now.', cause)
  }
}

function refusal(payment: Payment, reason: string, message?: string): Refused {
  return { reason, message, network: payment.network, payer: toShown(payment.network, payment.payer) }
}

/**
 * Nothing was claimed, so this log line is the only record. It repeats the payment's network only if it is one of ours,
 * because a payer may name any.
 */
function noteRefused(
  ctx: Context,
  { id: checkoutId, options }: Checkout,
  { network: caip2, reason }: Refused,
): void {
  const network = options.some((option) => option.network === caip2) ? idOfNetwork(caip2) : 'other'
  ctx.metrics.payments.inc({ network, outcome: 'refused' })
  ctx.log.info(
    { checkoutId, network, reason },
    'payment refused before it was claimed; the payer was told why',
  )
}

function pending(checkout: Checkout, payment: Payment, transaction: string | null): PayAnswer {
  return {
    kind: 'pending',
    checkout,
    transaction: transaction ?? '',
    network: payment.network,
    payer: toShown(payment.network, payment.payer),
  }
}

async function requirePayment(
  { rails, issuer }: PayEngine,
  { checkout, storeName }: PayView,
  { request: { resourceUrl: url }, quoted }: Attempt,
  error: string | undefined,
): Promise<PaymentRequired> {
  const terms = await toTerms(rails, checkout.id, checkout.options)
  if (terms.length === 0) throw unsettled('No running settler can settle a payment.')
  const accepts = quoted
    ? terms.map((each) => ({ ...each, extra: { ...each.extra, quote: quoted.quote } }))
    : terms
  const expiresAt = quoted?.until ?? checkout.expiresAt
  const required: PaymentRequired = {
    x402Version: 2,
    ...(error !== undefined && { error }),
    resource: {
      url,
      description: describeCheckout({ ...checkout, expiresAt }, storeName),
      mimeType: 'application/json',
    },
    accepts,
  }
  if (!issuer) return required
  const bytesMax = termsBytesMax - Buffer.byteLength(JSON.stringify(required))
  const extensions = issuer.signOffers(url, accepts, { expiresAt, bytesMax })
  return extensions ? { ...required, extensions } : required
}

/**
 * The terms are sent in a header too, and clients and proxies take 12 KiB of headers. In base64 the terms are a third longer,
 * and other headers need 1.5 KiB.
 */
const termsBytesMax = 8_064

/** Refusals of requests to pay, other than a 402. Each says whether the payer was charged or should repeat the request. */

/** Within this time, blocks have settled many of a wallet's payments in flight. */
const inFlightRetrySeconds = 10

function unsettled(detail: string, cause?: unknown): Problem {
  return new Problem('settlement_unavailable', `${detail} Nothing was charged.`, {
    retryAfterSeconds: 5,
    cause,
  })
}

/** The refusal of a payment to a store whose settlements have cost too much today. */
function overQuota(now: Date): Problem {
  const reset = nextDay(now)
  return new Problem(
    'settlement_unavailable',
    `This store’s payments have used up their allowance of network fees for today. It is renewed at ${reset.toISOString()}. Nothing was charged.`,
    { retryAfterSeconds: secondsUntil(reset, now) },
  )
}

/** The refusal of a contract wallet with a payment that failed on the chain. */
function resting(until: Date, now: Date): Problem {
  return new Problem(
    'rate_limited',
    `A payment of this contract wallet failed on the chain, so it can pay by signature again only from ${until.toISOString()}. It can still pay by sending the money itself. Nothing was charged.`,
    { retryAfterSeconds: secondsUntil(until, now) },
  )
}

/** The refusal of a wallet with too many payments in progress. */
function tooManyInFlight(): Problem {
  return new Problem(
    'rate_limited',
    `This wallet has more than ${inFlightMax} payments in progress. Nothing was charged. Repeat the same request with the same payment.`,
    { retryAfterSeconds: inFlightRetrySeconds },
  )
}

function secondsUntil(time: Date, now: Date): number {
  return Math.max(1, Math.ceil((time.getTime() - now.getTime()) / 1_000))
}

/**
 * The refusal of a payment header that can't be parsed. It includes the terms, so that the payer can send the header
 * again in the right form.
 */
export class MalformedPayment extends Problem {
  readonly required: PaymentRequired
  constructor(required: PaymentRequired, why: string) {
    super('malformed_payment', `The PAYMENT-SIGNATURE header cannot be parsed: ${why}.`)
    this.required = required
  }
}

function notApplied(payment: WirePayment): Problem {
  return new Problem('payment_not_applied', `The payment was recorded as ${payment.disposition}.`, {
    members: { payment },
  })
}

/** The refusal of payments while a restored database is being compared with the chains. */
export function restoringProblem(): Problem {
  return unsettled(whyRestoring)
}

/** The refusal of a payment for a checkout that cannot be paid. */
export function closedProblem({ status, expiresAt }: Checkout): Problem {
  switch (status) {
    case 'COMPLETED':
      return new Problem('already_paid', 'The checkout is already paid. This payment was not charged.')
    case 'PROCESSING':
      return inProgress()
    case 'CANCELED':
      return new Problem('checkout_canceled', 'The store canceled this checkout.')
    case 'OPEN':
    case 'EXPIRED':
      return new Problem('checkout_expired', `This checkout expired at ${expiresAt.toISOString()}.`)
  }
}

function inProgress(): Problem {
  return new Problem('payment_in_progress', 'A payment is being settled. Do not pay again.', {
    retryAfterSeconds: 5,
  })
}
