import { setTimeout as wait } from 'node:timers/promises'
import { privateKeyToAccount } from 'viem/accounts'
import {
  anyAddress,
  createOnce,
  type Load,
  payUntilKnown,
  randomBytes32,
  requestTimeoutMs,
  type Store,
  sign,
} from './buyers.ts'
import type { Random } from './random.ts'

/** The pause between two turns of each, so that they stay the smaller part of the load. */
const restMs = 1_500
/** Long enough for a transfer to be in a block that most processes have read. */
const landedMs = 1_200
const listed = 20
const undecided = ['unmatched', 'late', 'underpaid', 'overpaid']

type Payment = {
  readonly id: string
  readonly amount: string
  readonly acceptedAt: string | null
  readonly dismissedAt: string | null
}

/**
 * A buyer who sends the money from an exchange: asks for an amount of its own and transfers it, sometimes twice, a
 * unit too much or too late; or transfers the bare price, which could be for any order.
 */
export async function transferPlainly(load: Load, random: Random): Promise<void> {
  for (let turn = 0; !load.isOver; turn++) {
    const store = random.pick(load.stores)
    const price = random.pick(load.prices)
    const made = await createOnce(load, store, `plain-${turn}`, orderOf(`plain-${turn}`, price), random)
    if (made === null) continue
    const terms = await payUntilKnown(load, store, made, random)
    const [option] = terms?.status === 402 ? (JSON.parse(terms.body) as Terms).accepts : []
    if (option) {
      if (random.isLucky(0.7)) await reserve(load, made, random)
      const amount = (await load.readReserved(made)) ?? BigInt(option.amount)
      const sent = amount + (random.isLucky(0.1) ? 1n : 0n)
      for (let times = random.isLucky(0.15) ? 2 : 1; times > 0; times--)
        await load.chain.transfer(null, option.payTo, sent).catch(() => null)
      load.counts.plain++
    }
    await wait(random.between(0, restMs))
  }
}

/**
 * A thief who copies a signature from the chain. A payer pays a store without us, by an authorization of any amount,
 * and the thief presents it for an order of the same price.
 */
export async function copyFromChain(load: Load, random: Random): Promise<void> {
  for (let turn = 0; !load.isOver; turn++) {
    const store = random.pick(load.stores)
    const price = random.pick(load.prices)
    const made = await createOnce(load, store, `copied-${turn}`, orderOf(`copied-${turn}`, price), random)
    const terms = made === null ? null : await payUntilKnown(load, store, made, random)
    const victim = privateKeyToAccount(randomBytes32(random))
    await load.chain.fund(victim.address, 10_000_000n).catch(() => {})
    const signed = terms?.status === 402 ? await sign(load, victim, terms.body, random, 0) : null
    if (made !== null && signed) {
      await load.chain.frontRun(signed.authorized, signed.signature).catch(() => {})
      await wait(landedMs)
      const answer = await payUntilKnown(load, store, made, random, signed.header)
      if (answer) load.counts.copied++
    }
    await wait(random.between(0, 2 * restMs))
  }
}

/**
 * A store that decides about money that matches no order. It accepts the money for a new order, twice at once, or for
 * two orders; or it dismisses it, or does two of these at the same time.
 */
export async function decide(load: Load, store: Store, random: Random): Promise<void> {
  for (let turn = 0; !load.isOver; turn++) {
    const path = `/api/v1/payments?disposition=${random.pick(undecided)}&limit=${listed}`
    const page = await ask<{ data?: Payment[] }>(load, store, random, 'GET', path)
    const open = (page?.body.data ?? []).filter(
      ({ acceptedAt, dismissedAt }) => acceptedAt === null && dismissedAt === null,
    )
    for (const payment of open.filter(() => random.isLucky(0.4)).slice(0, 3))
      await decideOne(load, store, payment, `decided-${store.id}-${turn}-${payment.id}`, random)
    await wait(random.between(0, restMs))
  }
}

async function decideOne(load: Load, store: Store, { id }: Payment, order: string, random: Random) {
  const path = `/api/v1/payments/${id}`
  const accept = async (name: string, draw: Random) => {
    const checkoutId = await createOnce(load, store, name, orderOf(name, draw.pick(load.prices)), draw)
    if (checkoutId === null) return
    const answer = await ask(load, store, draw, 'POST', `${path}/accept`, { checkoutId })
    if (answer?.status === 200) load.counts.decided++
  }
  const dismiss = () => ask(load, store, random, 'POST', `${path}/dismiss`, { note: 'Not ours' })
  const refund = () => ask(load, store, random, 'POST', `${path}/refunds`, { reason: 'Sent by mistake' })
  const draw = random.next()
  if (draw < 0.4) await accept(`${order}-a`, random.fork('a'))
  else if (draw < 0.6)
    await Promise.all([accept(`${order}-a`, random.fork('a')), accept(`${order}-b`, random.fork('b'))])
  else if (draw < 0.8) await Promise.all([accept(`${order}-a`, random.fork('a')), refund()])
  else await dismiss()
}

type Terms = { readonly accepts: readonly { readonly amount: string; readonly payTo: `0x${string}` }[] }

function orderOf(orderId: string, priceAmount: string): string {
  return JSON.stringify({ orderId, priceAmount, priceCurrency: 'USD' })
}

/** The form of the payment page that reserves an amount. */
async function reserve(load: Load, checkoutId: string, random: Random): Promise<void> {
  await fetch(`http://127.0.0.1:${random.pick(load.ports)}/pay/${checkoutId}/transfer`, {
    method: 'POST',
    redirect: 'manual',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'x-forwarded-for': anyAddress(random),
      'sec-fetch-site': 'same-origin',
    },
    body: '',
    signal: AbortSignal.timeout(requestTimeoutMs),
  }).catch(() => {
    load.counts.unanswered++
  })
}

async function ask<Body>(
  load: Load,
  { id, key }: Store,
  random: Random,
  method: 'GET' | 'POST',
  path: string,
  sent?: object,
): Promise<{ readonly status: number; readonly body: Body } | null> {
  const askedAt = new Date()
  try {
    const response = await fetch(`http://127.0.0.1:${random.pick(load.ports)}${path}`, {
      method,
      headers: {
        'x-api-key': key,
        'x-forwarded-for': anyAddress(random),
        ...(sent && { 'content-type': 'application/json' }),
      },
      ...(sent && { body: JSON.stringify(sent) }),
      signal: AbortSignal.timeout(requestTimeoutMs),
    })
    const [{ status }, body] = [response, await response.text()]
    const times = { askedAt, answeredAt: new Date() }
    load.answers.push({ kind: 'decide', storeId: id, checkoutId: null, status, body, ...times })
    return { status, body: JSON.parse(body) as Body }
  } catch {
    load.counts.unanswered++
    return null
  }
}
