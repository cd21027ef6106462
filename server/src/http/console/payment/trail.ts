import type { Event, EventType, Refund } from '@farthing/sdk'
import { toShown } from '../../../chains/families.ts'
import type { BuyerReceipt } from '../../../checkouts/buyer-receipts/receipt.ts'
import { type Checkout, nameOf } from '../../../checkouts/checkout.ts'
import type { Claim, Told } from '../../../checkouts/trail.ts'
import { type CreditRow, toPayment } from '../../../payments/credits/credit.ts'
import { type Html, html } from '../../page/html.ts'
import { type Locale, showCount, showDuration, showShort, showTokens } from '../formats.ts'
import type { Texts } from '../texts/choose.ts'

type StepId = keyof Texts['payment']['steps']

/** One step of a payment: when it happened, what fills its sentence, who caused it, and the record behind it. */
export type TrailStep = {
  readonly id: StepId
  /** Null if it has not happened yet. */
  readonly at: Date | null
  readonly fills: Readonly<Record<string, string | Html>>
  readonly by: string | null
  readonly raw: unknown
  readonly tone: 'done' | 'failed' | 'coming'
}

/** What is known of a checkout or of money without one. */
export type Trail = {
  readonly checkout: Checkout | null
  readonly receipt: BuyerReceipt | null
  readonly credits: readonly CreditRow[]
  readonly claims: readonly Claim[]
  readonly events: readonly Event[]
  readonly told: readonly Told[]
  readonly refunds: readonly Refund[]
  /** By payment, what went back of it. */
  readonly returned: ReadonlyMap<string, bigint>
  /** What the checkout asked for in the token that its main payment came in, if that differs from what came. */
  readonly due: bigint | null
}

/** The steps of events that no other record covers. Other steps come from the records themselves. */
const stepOf: Readonly<Partial<Record<EventType, StepId>>> = {
  'checkout.created': 'created',
  'checkout.completed': 'completed',
  'checkout.reopened': 'reopened',
  'checkout.expired': 'expired',
  'checkout.canceled': 'canceled',
  'payment.late': 'late',
  'payment.underpaid': 'underpaid',
  'payment.overpaid': 'overpaid',
  'payment.reorged': 'reorged',
  'payment.reversed': 'reversed',
  'payment.accepted': 'accepted',
  'payment.dismissed': 'dismissed',
  'payment.noted': 'noted',
}
const failures: readonly StepId[] = [
  'refused',
  'reorged',
  'reversed',
  'undelivered',
  'late',
  'underpaid',
  'overpaid',
]

/** Every step that is stored, oldest first, then what is still to come. */
export function stepsOf(trail: Trail, locale: Locale): TrailStep[] {
  const steps = [
    ...trail.events.flatMap((event) => eventSteps(event)),
    ...trail.claims.flatMap((claim) => claimSteps(claim, locale)),
    ...trail.credits.flatMap((credit) => creditSteps(credit, locale)),
    ...trail.refunds.flatMap((refund) => refundSteps(refund, locale)),
    ...trail.told.map((told) => deliveryStep(told, trail.events, locale)),
  ]
  return steps.toSorted((a, b) => (a.at?.getTime() ?? Infinity) - (b.at?.getTime() ?? Infinity) || 0)
}

function step(
  id: StepId,
  at: Date | null,
  raw: unknown,
  fills: TrailStep['fills'] = {},
  by: string | null = null,
): TrailStep {
  return { id, at, fills, by, raw, tone: at === null ? 'coming' : failures.includes(id) ? 'failed' : 'done' }
}

function eventSteps(event: Event): TrailStep[] {
  const id = stepOf[event.type]
  if (!id) return []
  const { actor, data } = event
  const order = 'checkout' in data && data.checkout ? nameOf(data.checkout) : ''
  const note = 'payment' in data ? (data.payment.note?.text ?? '–') : ''
  const by = actor ? (actor.name ?? `${actor.type} ${actor.id}`) : null
  return [step(id, new Date(event.createdAt), event, { order: html`<bdi>${order}</bdi>`, note }, by)]
}

function claimSteps(claim: Claim, locale: Locale): TrailStep[] {
  const payer = toShown(claim.network, claim.payer)
  const amount = showTokens(locale, claim, claim.amount)
  const raw = { ...claim, payer, asset: toShown(claim.network, claim.asset) }
  const fills = {
    ...{ payer: showShort(payer), amount, reason: claim.reason ?? claim.state },
    ...{ count: showCount(locale, claim.together - 1), transaction: showShort(claim.transaction ?? '') },
  }
  return [
    step('signed', claim.claimedAt, raw, fills),
    ...(claim.sentAt ? [step(claim.together > 1 ? 'sentTogether' : 'sent', claim.sentAt, null, fills)] : []),
    ...(claim.state === 'dead' || claim.state === 'rejected'
      ? [step('refused', claim.resolvedAt ?? claim.claimedAt, null, fills)]
      : []),
  ]
}

function creditSteps(credit: CreditRow, locale: Locale): TrailStep[] {
  const fills = {
    amount: showTokens(locale, credit, credit.amount),
    block: showCount(locale, credit.blockNumber),
  }
  return [
    step('block', credit.includedAt, toPayment(credit), fills),
    ...(credit.safeAt ? [step('safe', credit.safeAt, null)] : []),
    ...(credit.finalizedAt ? [step('final', credit.finalizedAt, null)] : []),
    ...(credit.finalizedAt || credit.isReversed ? [] : [step('awaitFinal', null, null)]),
  ]
}

function refundSteps(refund: Refund, locale: Locale): TrailStep[] {
  const fills = {
    refund: showTokens(locale, refund, refund.amount),
    ...{ address: showShort(refund.recipient ?? ''), transaction: showShort(refund.transaction ?? '') },
  }
  return [
    step('refundAsked', new Date(refund.createdAt), refund, fills),
    ...(refund.completedAt === null ? [] : [step('refunded', new Date(refund.completedAt), null, fills)]),
  ]
}

function deliveryStep(told: Told, events: readonly Event[], locale: Locale): TrailStep {
  const type = events.find(({ id }) => id === told.eventId)?.type ?? ''
  const fills = {
    ...{ type: html`<code>${type}</code>`, host: URL.parse(told.url)?.host ?? told.url },
    ...{ status: String(told.status ?? ''), count: showCount(locale, told.tries) },
    time: told.durationMs === null ? '' : `${showCount(locale, told.durationMs)} ms`,
  }
  if (told.state === 'delivered') return step('delivered', told.finishedAt, told, fills)
  if (told.state === 'undeliverable') return step('undelivered', told.finishedAt, told, fills)
  return step('delivering', null, told, fills)
}

/** How long after the step before it a step came; null where that says nothing. */
export function gapOf(locale: Locale, before: TrailStep | undefined, { at }: TrailStep): string | null {
  const ms = at && before?.at ? at.getTime() - before.at.getTime() : 0
  return ms >= 1_000 ? showDuration(locale, ms) : null
}
