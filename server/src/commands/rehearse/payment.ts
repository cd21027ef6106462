import { setTimeout as wait } from 'node:timers/promises'
import {
  type Checkout,
  type Event,
  type EventType,
  type FarthingClient,
  formatUnits,
  type Payment,
  parseUnits,
  type Refund,
  RefundMismatch,
} from '@farthing/sdk'
import { knownAssets, type Offer, type PayResult, pay } from '@farthing/sdk/pay'
import type { Network } from '../../networks.ts'
import type { Options } from '../usage.ts'
import { checkDeliveries, type Sent } from './checks.ts'
import type { Purse } from './purse.ts'
import { type Report, StepFailed } from './report.ts'

/** The part in which money moves. Each step looks for what an earlier run did, and goes on from there. */

const price = '0.01'
const lookMs = 1_000
/** Events are numbered in less than a second. */
const eventSecondsMax = 20
/** Sequencers publish their blocks late now and then. After this, somebody should look. */
const finalMinutesMax = 60
/** About the time that a network needs until a transfer is safe. */
const refundWaitMs = 120_000
const sameLine = 'Then run the same line again: it goes on from here and pays nothing twice.'

/** What all steps need. */
export type Rehearsal = {
  readonly network: Network
  readonly client: FarthingClient
  readonly report: Report
  readonly now: () => Date
  readonly signal: AbortSignal
}

/**
 * The checkout of the last rehearsal on this network, or a new one if there is none or it is over. It is found by its
 * order, and created under a key that follows from the last one: so runs at once, and a run after one that was killed,
 * have the same checkout.
 */
export async function findCheckout(
  { network, client }: Rehearsal,
  after: Options[string],
): Promise<Checkout> {
  const orderId = `rehearsal-${network.id}`
  const [last] = (await client.checkouts.list({ orderId, limit: 1 }).page()).data
  if (last && !(await isOver(client, last, after))) return last
  const order = { orderId, priceAmount: price, priceCurrency: 'USD', description: 'Rehearsal' }
  return await client.checkouts.create(order, { idempotencyKey: `${orderId}-after-${last?.id ?? 'none'}` })
}

/**
 * Whether another cent may be paid. `after` names the rehearsal that another one is to follow, so that the same line
 * typed twice asks for one more, and not for two.
 */
async function isOver(client: FarthingClient, last: Checkout, after: Options[string]): Promise<boolean> {
  if (last.status === 'OPEN' || last.status === 'PROCESSING') return false
  if (after === last.id) return true
  if (last.status === 'COMPLETED') return false
  const { data: payments } = await client.payments.list({ checkoutId: last.id }).page()
  if (payments.length === 0) return true
  throw new StepFailed(
    `${last.id} is ${last.status}, but money came for it that did not complete it`,
    `Accept or refund that payment in the console. To pay another cent, add --after ${last.id}`,
  )
}

/** Pays as any agent does: the checkout's URL asks for a payment, and the wallet signs it. */
export async function payCheckout(
  { network, now, signal }: Rehearsal,
  checkout: Checkout,
  payer: Purse,
  confirm: (offer: Offer) => Promise<boolean>,
): Promise<{ readonly result: PayResult & { outcome: 'paid' }; readonly signedAt: Date | null }> {
  let signedAt: Date | null = null
  let lastAnswer = ''
  const result = await pay(checkout.checkoutUrl, payer.signer, {
    max: price,
    assets: knownAssets.filter((asset) => asset.network === network.caip2),
    kept: payer.kept,
    signal,
    onWait({ status, detail }) {
      lastAnswer = status === null ? 'no answer' : `${status}${detail === null ? '' : `, ${detail}`}`
    },
    async approve(offer) {
      const isApproved = await confirm(offer)
      signedAt = now()
      return isApproved
    },
  })
  if (result.outcome === 'paid') return { result, signedAt }
  if (result.outcome === 'pending')
    throw new StepFailed(
      `the outcome is not known yet${lastAnswer === '' ? '' : `; the last answer was: ${lastAnswer}`}`,
      `Pay in no other way. Check that serve and work are running, and read their logs. ${sameLine}`,
    )
  throw new StepFailed(result.detail, findRemedy(network, checkout, payer, result))
}

function findRemedy(
  network: Network,
  { id }: Checkout,
  { signer }: Purse,
  { code, charged, signedUntil }: PayResult & { outcome: 'refused' },
): string {
  if (charged !== null)
    return 'The money arrived, but did not complete the checkout. Accept or refund it in the console.'
  if (code === 'declined') return 'Nothing was signed. Run the same line again when you want to pay.'
  if (code === 'unknown_asset')
    return `It was made before the store could be paid on ${network.name}. Cancel it, with the store’s key: farthing checkout cancel ${id}. Then run the same line again.`
  const again =
    signedUntil === null
      ? 'Then run the same line again.'
      : `Then run the same line again. It submits the same signature, which can be used until ${signedUntil}, and signs another one only after that.`
  return /insufficient_(balance|funds)$/.test(code)
    ? `Send ${price} ${network.assets[0]?.symbol} on ${network.name} to ${signer.address}. ${again}`
    : `Run farthing-admin doctor, and read the log of serve. ${again}`
}

/** The payment as the store sees it, once it is there. */
export async function readPayment(
  { client }: Rehearsal,
  { id }: Checkout,
  transaction: string,
): Promise<Payment> {
  for await (const payment of client.payments.list({ checkoutId: id }))
    if (payment.transaction === transaction) return payment
  throw new StepFailed(
    `the store has no payment with the transaction ${transaction}`,
    `The chain may have taken it back for now. Wait a minute. ${sameLine}`,
  )
}

/** Waits until the store's log has an event of the checkout, and looks whether the endpoints that want it took it. */
export async function checkEvent(
  { client, report, signal }: Rehearsal,
  { id }: Checkout,
  type: EventType,
): Promise<void> {
  const event = await awaitEvent(client, id, type, signal)
  await report.ok('event', `the store’s log has ${type}, with the number ${event.sequence}`)
  const sent: Sent[] = []
  for await (const { id: endpointId, url, status, types } of client.webhookEndpoints.list())
    if (status === 'enabled' && (types.length === 0 || types.includes(type)))
      sent.push({ endpointId, url, eventId: event.id })
  if (sent.length > 0) await checkDeliveries(client, report, type, sent, signal)
}

async function awaitEvent(
  client: FarthingClient,
  checkoutId: string,
  type: EventType,
  signal: AbortSignal,
): Promise<Event> {
  for (let looks = 0; ; looks++) {
    const { data } = await client.events.list({ checkoutId, limit: 100 })
    const event = data.findLast((each) => each.type === type)
    if (event) return event
    if (looks * lookMs > eventSecondsMax * 1_000)
      throw new StepFailed(
        `the store’s log has ${data.map((each) => each.type).join(', ') || 'nothing'}, but not ${type}`,
        `Check that work is running and read its log: it numbers events. ${sameLine}`,
      )
    await wait(lookMs, undefined, { signal })
  }
}

/** Waits until the chain cannot take the payment back, and notes how long that took. */
export async function awaitFinal(rehearsal: Rehearsal, paymentId: string): Promise<string> {
  const { client, report } = rehearsal
  const payment = await awaitThat(
    rehearsal,
    'payment',
    () => client.payments.get(paymentId),
    ({ finality }) => finality,
  )
  const since = Date.parse(payment.includedAt)
  const told = (['safeAt', 'finalizedAt'] as const).flatMap((field) => {
    const at = payment[field]
    if (at === null) return []
    const word = field === 'safeAt' ? 'safe' : 'final'
    return `${word} after ${report.time(`the payment’s block was ${word}`, Date.parse(at) - since)}`
  })
  return told.join(', ')
}

async function awaitThat<Moved>(
  { network, report, now, signal }: Rehearsal,
  what: string,
  read: () => Promise<Moved>,
  finalityOf: (moved: Moved) => string | null,
): Promise<Moved> {
  const begunAt = now().getTime()
  for (let looks = 0; ; looks++) {
    const moved = await read()
    const finality = finalityOf(moved)
    if (finality === 'finalized') return moved
    if (finality === 'reversed')
      throw new StepFailed(
        `the chain took the ${what} back`,
        `Wait a minute: as long as it can be, it is sent again. ${sameLine}`,
      )
    if (now().getTime() - begunAt > finalMinutesMax * 60_000)
      throw new StepFailed(
        `after ${finalMinutesMax} minutes the ${what} is ${finality ?? 'not in a block'} and not final`,
        `Run farthing-admin doctor, and look up ${network.name}’s state. ${sameLine}`,
      )
    if (looks === 0)
      report.say(
        `       Waiting until the ${what} is final. Ctrl-C is safe: the same line goes on from here.`,
      )
    await wait(lookMs, undefined, { signal })
  }
}

/**
 * Returns the cent to its payer, signed by the wallet that got it, and waits until that is final too. How much, and to
 * whom, are our own words: a server that somebody has taken over must not get anything else signed.
 */
export async function refundPayment(
  rehearsal: Rehearsal,
  { id, asset }: Payment,
  { payer, wallet }: { readonly payer: Purse; readonly wallet: Purse },
): Promise<string> {
  const { client, network, report, now, signal } = rehearsal
  const recipient = payer.signer.address
  const { decimals } = network.assets.find(({ address }) => isSame(address, asset)) ?? {}
  const cent = decimals === undefined ? null : parseUnits(price, decimals)
  if (cent === null) throw new StepFailed(`${asset} is no token of ${network.name}`, 'Upgrade Farthing.')
  const terms = { amount: `${cent}`, recipient, network: network.caip2 }
  const refund = await findRefund(rehearsal, id, terms.amount)
  const signedAt = refund.status === 'REQUESTED' ? now() : null
  const done = isEnded(refund)
    ? refund
    : await client.refunds
        .sign(refund.id, wallet.signer, terms, { waitMs: refundWaitMs, kept: wallet.kept, signal })
        .catch(async (error) => {
          if (!(error instanceof RefundMismatch) || error.field !== 'transaction') throw error
          await client.refunds.cancel(refund.id)
          throw new StepFailed(
            `a run that was stopped has signed ${refund.id} with a transaction that came too late`,
            'It is canceled, once that transaction can no longer land. Run the same line again in two minutes: it makes a new refund.',
          )
        })
  if (done.status === 'DECLARED') return `${done.id}: the store says that it paid it in another way`
  if (done.status === 'FAILED' || done.status === 'CANCELED')
    throw new StepFailed(
      `${done.id} is ${done.status}: ${done.failure ?? 'no money moved'}`,
      'Run the same line again: it makes a new refund of the same payment.',
    )
  if (done.status !== 'COMPLETED')
    throw new StepFailed(
      `${done.id} is ${done.status} and not completed yet`,
      `Check that work is running, and read its log. ${sameLine}`,
    )
  const took = signedAt && report.time('the refund completed', now().getTime() - signedAt.getTime())
  const told = `${describeAmount(network, done)} back to ${done.recipient} in ${describeTransaction(network, done.transaction ?? '')}`
  await report.ok('refund', took === null ? told : `${told}, ${took} after the signature`)
  const completedAt = now().getTime()
  await awaitThat(
    rehearsal,
    'refund',
    () => client.refunds.get(done.id),
    ({ finality }) => finality,
  )
  return took === null
    ? 'final'
    : `final after ${report.time('the refund was final', now().getTime() - completedAt)}`
}

/** The payment's refund that counts, or a new one if there is none. */
async function findRefund({ client }: Rehearsal, paymentId: string, amount: string): Promise<Refund> {
  const refunds: Refund[] = []
  for await (const refund of client.refunds.list({ paymentId })) refunds.push(refund)
  const current = refunds.find(({ status }) => status !== 'FAILED' && status !== 'CANCELED')
  return (
    current ??
    (await client.refunds.create(
      paymentId,
      { amount, reason: 'Rehearsal' },
      { idempotencyKey: `rehearsal-${paymentId}-${refunds.length}` },
    ))
  )
}

function isEnded({ status }: Refund): boolean {
  return ['COMPLETED', 'DECLARED', 'FAILED', 'CANCELED'].includes(status)
}

export function describeAmount(
  { assets }: Network,
  { asset, amount }: { readonly asset: string; readonly amount: string },
): string {
  const token = assets.find(({ address }) => isSame(address, asset))
  return token
    ? `${formatUnits(BigInt(amount), token.decimals)} ${token.symbol}`
    : `${amount} units of ${asset}`
}

function isSame(address: string, other: string): boolean {
  return address.toLowerCase() === other.toLowerCase()
}

/** With the page of a block explorer where a person can look it up. */
export function describeTransaction({ explorerUrl }: Network, transaction: string): string {
  return explorerUrl === null ? transaction : `${transaction} (${explorerUrl}/tx/${transaction})`
}
