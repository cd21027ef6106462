import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import type { Event, PaymentRequired } from '@farthing/sdk'
import type { LightMyRequestResponse } from 'fastify'
import type { Hex } from 'viem'
import { patienceMs } from './patience.ts'
import type { Shop } from './shop.ts'

export type Answer = LightMyRequestResponse

const lookEveryMs = 20

/** What reading a store's log takes. */
export type Log = Pick<Shop, 'ctx' | 'request' | 'key'>

/** Repeats `look` until it finds something, for effects that happen in the background. */
export async function until<Found>(
  look: () => Promise<Found | null | undefined | false>,
  what: string,
): Promise<Found> {
  const end = performance.now() + patienceMs
  for (;;) {
    const found = await look()
    if (found) return found
    assert(performance.now() < end, `${what} did not happen`)
    await wait(lookEveryMs)
  }
}

export async function untilStatus(
  shop: Pick<Shop, 'read'>,
  checkoutId: string,
  status: string,
): Promise<void> {
  await until(async () => (await shop.read(checkoutId)).status === status, `${checkoutId} ${status}`)
}

/** The checkout's events in the store's log so far. */
export async function eventsOf(shop: Log, checkoutId: string): Promise<Event[]> {
  return (await readLog(shop)).filter((event) => event.checkoutId === checkoutId)
}

/** The store's whole log, once all events so far have their sequence numbers. */
export async function readLog(shop: Log): Promise<Event[]> {
  const waiting = 'select 1 as one from events where sequence is null limit 1'
  await until(async () => (await shop.ctx.db.query(waiting)).length === 0, 'the numbering of all events')
  const events: Event[] = []
  let after = ''
  for (;;) {
    const page = await shop.request({
      url: `/api/v1/events?limit=100${after}`,
      headers: { 'x-api-key': shop.key },
    })
    assert.equal(page.statusCode, 200, page.body)
    events.push(...page.json().data)
    if (!page.json().hasMore) return events
    after = `&after=${page.json().cursor}`
  }
}

/** Waits for an event, because events get their sequence numbers a moment after they are written. */
export async function untilEvent(shop: Log, checkoutId: string, type: string): Promise<Event> {
  return await until(
    async () => (await eventsOf(shop, checkoutId)).find((event) => event.type === type),
    `${type} of ${checkoutId}`,
  )
}

/** The transaction that carries a payment, once it has been sent. */
export async function untilSent(shop: Shop, header: string): Promise<{ hash: Hex; settler: string }> {
  const { nonce } = decode(header).payload.authorization
  return await until(async () => {
    const [row] = await shop.ctx.db.query<{ hash: Hex; settler: string }>(
      `select b.hash, c.settler from transaction_calls c join broadcasts b on b.network = c.network
         and b.settler = c.settler and b.nonce = c.settler_nonce where c.nonce = $1 and b.last_sent_at is not null`,
      [nonce],
    )
    return row
  }, 'a send')
}

/** Waits for a live lane. A lane is live once its worker has read the chain for the first time. */
export async function untilReady(shop: Pick<Shop, 'ctx'>): Promise<void> {
  const live = () =>
    shop.ctx.db.query(
      `select 1 as one from settlers s join followers f on f.network = s.network and f.head_time is not null
       where s.state = 'active' and s.balance_wei is not null and s.alive_at > clock() - interval '5 seconds'`,
    )
  await until(async () => (await live()).length > 0, 'a live lane')
}

/** Mines if a transaction is pending. Needless blocks would move the chain's time ahead of the clock. */
export async function mineSent({ chain }: Shop): Promise<void> {
  const { pending } = await chain.client.getTxpoolStatus()
  if (pending > 0) await chain.mine()
}

/** As if the worker had just been killed: no worker runs, but its lanes still count as live. */
export async function killWork(shop: Shop, stop: () => Promise<void>): Promise<void> {
  await stop()
  await shop.ctx.db.query('update settlers set alive_at = clock()')
}

/** Makes a checkout expire this many seconds ago. */
export async function letExpire(shop: Shop, checkoutId: string, secondsAgo = 1): Promise<void> {
  await shop.ctx.db.query(
    `update checkouts set created_at = clock() - interval '1 day',
       expires_at = clock() - make_interval(secs => $2) where id = $1`,
    [checkoutId, secondsAgo],
  )
}

/** Asserts that the answer is this problem and offers no terms. */
export function assertProblem(answer: Answer, status: number, code: string): void {
  assert.equal(answer.statusCode, status, answer.body)
  assert.equal(answer.json().code, code)
  assert.equal(answer.headers['payment-required'], undefined)
  assert.equal(answer.headers['payment-response'], undefined)
}

/** Asserts that the answer is 402 for this reason, with the terms in header and body and a failed settlement. */
export function assertRefused(shop: Shop, answer: Answer, reason: string): void {
  assert.equal(answer.statusCode, 402, answer.body)
  const terms = answer.json<PaymentRequired>()
  assert.equal(terms.error, reason)
  assert.deepEqual(decode(String(answer.headers['payment-required'])), terms)
  const { success, errorReason, transaction } = shop.settlementOf(answer)
  assert.deepEqual(
    { success, errorReason, transaction },
    { success: false, errorReason: reason, transaction: '' },
  )
}

export function assertPaid(answer: Answer): void {
  assert.equal(answer.statusCode, 200, answer.body)
  assert.equal(answer.json().status, 'COMPLETED')
  assert.equal(answer.headers['payment-required'], undefined)
}

export type Payload = {
  x402Version: unknown
  accepted: Record<string, unknown>
  payload: { signature: string; authorization: Record<string, string> }
  extensions?: unknown
}

export function decode<Json = Payload>(header: string): Json {
  return JSON.parse(Buffer.from(header, 'base64').toString())
}

export function encode(payload: unknown): string {
  return Buffer.from(JSON.stringify(payload)).toString('base64')
}

/** The header with a change made after signing. */
export function alter(header: string, change: (payload: Payload) => unknown): string {
  const payload = decode(header)
  change(payload)
  return encode(payload)
}

/** Waits until the follower has read the chain up to its head. */
export async function untilRead(shop: Shop): Promise<void> {
  const { number } = await shop.chain.client.getBlock()
  await until(async () => {
    const [row] = await shop.ctx.db.query<{ head_number: string }>(
      'select head_number from followers where network = $1',
      [shop.chain.network.caip2],
    )
    return row && BigInt(row.head_number) >= number
  }, `block ${number} read`)
}
