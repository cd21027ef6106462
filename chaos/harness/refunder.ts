import { setTimeout as wait } from 'node:timers/promises'
import type { Hex, TypedDataDefinition } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { anyAddress, type Load, requestTimeoutMs, type Store } from './buyers.ts'
import type { Authorized } from './chain.ts'
import type { Random } from './random.ts'

/** A store, and the key of its wallet. */
export type Refunder = Store & { readonly walletKey: Hex }

type Payment = {
  readonly id: string
  readonly finality: string
  readonly amount: string
  readonly payer: string
}
type Refund = { readonly id: string; readonly status: string }
type Prepared = { readonly typedData: TypedDataDefinition & { readonly message: Authorized } }
type Answered<Body> = { readonly status: number; readonly body: Body & { readonly code?: string } }

/** The share of payments that are refunded. */
const refundedShare = 0.4
const listed = 50
/** How many payments a store refunds at a time. */
const atOnce = 4
/** If nothing was final before the faults ended, the run still refunds some payments, for at most this long. */
const lateMs = 15_000
const lateRefunds = 3
/** The pause between two reads of the payments, so that refunds stay the smaller part of the load. */
const restMs = 400
/** How long the store follows a refund that it has signed before it continues with the next payment. */
const followedMs = 20_000
/** The share of refunds that the store sends itself. */
const selfSentShare = 0.15

/**
 * A store that refunds some of its payments, all at once or in two parts, signed by its own wallet. Like the buyers, it
 * repeats requests that got no answer. Sometimes it sends everything twice at once, asks for more than is left, cancels
 * before or after it has signed, never signs, or lets a stranger submit its signature.
 */
export async function refund(load: Load, store: Refunder, random: Random): Promise<void> {
  const seen = new Set<string>()
  let overAt: number | null = null
  let refunded = 0
  const goesOn = () => {
    if (!load.isOver) return true
    overAt ??= Date.now()
    return refunded < lateRefunds && Date.now() < overAt + lateMs
  }
  while (goesOn()) {
    const page = await call<{ data: Payment[] }>(
      load,
      store,
      random,
      'GET',
      `/api/v1/payments?disposition=exact&limit=${listed}`,
    )
    const fresh = (page?.body.data ?? []).filter(
      ({ id, finality }) => finality === 'finalized' && !seen.has(id),
    )
    const chosen = fresh.filter(() => random.isLucky(refundedShare))
    for (const { id } of fresh) seen.add(id)
    for (let i = 0; i < chosen.length && goesOn(); i += atOnce) {
      const some = chosen.slice(i, i + atOnce)
      refunded += some.length
      await Promise.all(some.map((payment) => refundPayment(load, store, payment, random.fork(payment.id))))
    }
    await wait(restMs)
  }
}

async function refundPayment(load: Load, store: Refunder, payment: Payment, random: Random): Promise<void> {
  const { id: paymentId } = payment
  if (random.isLucky(selfSentShare)) return await sendBack(load, store, payment, random)
  const price = BigInt(payment.amount)
  const parts = random.isLucky(0.3) ? [price / 4n, price - price / 4n] : [null]
  for (const [i, amount] of parts.entries())
    await refundOnce(load, store, paymentId, `${paymentId}-${i}`, amount, random.fork(`part ${i}`))
  // The whole payment is being refunded or was refunded, so any further refund must be refused.
  if (random.isLucky(0.3)) await refundOnce(load, store, paymentId, `${paymentId}-more`, 20_000n, random)
}

async function refundOnce(
  load: Load,
  store: Refunder,
  paymentId: string,
  key: string,
  amount: bigint | null,
  random: Random,
): Promise<void> {
  const sent = JSON.stringify({ ...(amount !== null && { amount: `${amount}` }), reason: 'Sent back' })
  const create = () =>
    untilKnown(load, random, () =>
      call<Refund>(load, store, random, 'POST', `/api/v1/payments/${paymentId}/refunds`, sent, key),
    )
  const [made] = await Promise.all([create(), ...(random.isLucky(0.15) ? [create()] : [])])
  if (made?.status !== 201 && made?.status !== 200) return
  load.counts.refundsAsked++
  const path = `/api/v1/refunds/${made.body.id}`
  const cancel = () =>
    untilKnown(load, random, () => call<Refund>(load, store, random, 'POST', `${path}/cancel`))
  if (random.isLucky(0.05)) return void (await cancel())
  const signed = await prepareAndSign(load, store, path, random)
  if (!signed) return
  const draw = random.next()
  // It was prepared but its signature is never presented, so it counts until its window has ended.
  if (draw < 0.05) return
  if (draw < 0.1) await cancel()
  if (draw < 0.2) await load.chain.frontRun(signed.message, signed.signature).catch(() => {})
  const present = () =>
    untilKnown(load, random, () =>
      call<Refund>(
        load,
        store,
        random,
        'POST',
        `${path}/signature`,
        JSON.stringify({ signature: signed.signature }),
      ),
    )
  await Promise.all([present(), ...(random.isLucky(0.15) ? [present(), present()] : [])])
  await follow(load, store, path, random)
}

/** The store's wallet pays the refund without us, and the store names the transaction: sometimes of too little. */
async function sendBack(load: Load, store: Refunder, { id, amount, payer }: Payment, random: Random) {
  const path = `/api/v1/payments/${id}/refunds`
  const sent = JSON.stringify({ way: 'self-sent', reason: 'Sent by hand' })
  const made = await untilKnown(load, random, () =>
    call<Refund>(load, store, random, 'POST', path, sent, `${id}-sent`),
  )
  if (made?.status !== 201 && made?.status !== 200) return
  load.counts.refundsAsked++
  const from = privateKeyToAccount(store.walletKey).address
  const units = random.isLucky(0.1) ? BigInt(amount) - 1n : BigInt(amount)
  const transaction = await load.chain.transfer(from, payer, units).catch(() => null)
  if (transaction === null) return
  const own = `/api/v1/refunds/${made.body.id}`
  await untilKnown(load, random, () =>
    call<Refund>(load, store, random, 'POST', `${own}/transaction`, JSON.stringify({ transaction })),
  )
  await follow(load, store, own, random)
}

/** Signs what the server prepared, as long as it is what the store asked for. */
async function prepareAndSign(load: Load, { walletKey, ...store }: Refunder, path: string, random: Random) {
  const prepared = await untilKnown(load, random, () =>
    call<Prepared>(load, store, random, 'POST', `${path}/prepare`),
  )
  if (prepared?.status !== 200) return null
  const { typedData } = prepared.body
  const signature = await privateKeyToAccount(walletKey).signTypedData(typedData)
  load.counts.refundsSigned++
  return { signature, message: typedData.message }
}

async function follow(load: Load, store: Store, path: string, random: Random): Promise<void> {
  const until = Math.min(load.giveUpAt, Date.now() + followedMs)
  while (Date.now() < until) {
    const read = await call<Refund>(load, store, random, 'GET', path)
    if (read?.status === 404 || ['COMPLETED', 'FAILED', 'CANCELED'].includes(read?.body.status ?? '')) {
      if (read?.body.status === 'COMPLETED') load.counts.refunded++
      return
    }
    await wait(random.between(200, 600))
  }
}

/** Repeats a request until the answer is about the refund. */
async function untilKnown<Body>(
  load: Load,
  random: Random,
  ask: () => Promise<Answered<Body> | null>,
): Promise<Answered<Body> | null> {
  while (Date.now() < load.giveUpAt) {
    const answer = await ask()
    if (answer && answer.status < 500 && answer.body.code !== 'payment_not_final') return answer
    if (load.isOver && answer?.status === 503) return null
    await wait(random.between(100, 500))
  }
  return null
}

async function call<Body>(
  load: Load,
  { id, key: apiKey }: Store,
  random: Random,
  method: 'GET' | 'POST',
  path: string,
  sent?: string,
  key?: string,
): Promise<Answered<Body> | null> {
  const askedAt = new Date()
  try {
    const response = await fetch(`http://127.0.0.1:${random.pick(load.ports)}${path}`, {
      method,
      headers: {
        'x-api-key': apiKey,
        'x-forwarded-for': anyAddress(random),
        ...(sent !== undefined && { 'content-type': 'application/json' }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(sent !== undefined && { body: sent }),
      signal: AbortSignal.timeout(requestTimeoutMs),
    })
    const body = await response.text()
    const { status } = response
    // A preparation's answer has the refund in it, and a list has none.
    if (method === 'POST' && !path.endsWith('/prepare'))
      load.answers.push({
        ...{ kind: 'refund', storeId: id, checkoutId: null, status, body, askedAt, answeredAt: new Date() },
        ...(key !== undefined && { key }),
        ...(sent !== undefined && { sent }),
      })
    return { status, body: JSON.parse(body) as Answered<Body>['body'] }
  } catch {
    load.counts.unanswered++
    return null
  }
}

/** Proves that the wallet is the store's, which refunds require. */
export async function proveWallet(
  store: Refunder,
  send: (method: string, path: string, body?: object) => Promise<object>,
): Promise<void> {
  const path = `/api/v1/stores/${store.id}/wallets`
  const { data } = (await send('GET', path)) as { data: readonly { id: string }[] }
  const [wallet] = data
  const { message } = (await send('POST', `${path}/${wallet?.id}/challenge`)) as { message: string }
  const signature = await privateKeyToAccount(store.walletKey).signMessage({ message })
  await send('POST', `${path}/${wallet?.id}/prove`, { signature })
}
