import { createHash } from 'node:crypto'
import type { CreateCheckout } from '@farthing/sdk'

/** Made-up orders of a small shop: the same on every machine, apart from the day on which they end. */
export type OrderStep = {
  readonly at: Date
  readonly does:
    | 'create'
    | 'pay'
    | 'stray'
    | 'refuse'
    | 'cancel'
    | 'expire'
    | 'accept'
    | 'dismiss'
    /** All of the payment is refunded, half of it is, or a refund is requested and not signed yet. */
    | 'refund'
    | 'refund-half'
    | 'ask-refund'
}

export type Order = {
  readonly number: number
  readonly input: CreateCheckout
  readonly payer: `0x${string}`
  /** How much of the price is paid; for money that belongs to no order, how many whole tokens. */
  readonly percent: number
  readonly steps: readonly OrderStep[]
}

/** This month and all of the last one. */
export const historyDays = 62
const dayMs = 86_400_000
const minuteMs = 60_000
/** How long orders in each currency stay open: a rate holds for an hour. */
const lifetimeMs = { USD: dayMs, EUR: 60 * minuteMs } as const
/** Newer money that needs a decision still waits for one. */
const undecidedDays = 6
/** Kinds of orders by how many days ago they are: a late, a short and a stray payment always wait for a decision. */
const waiting = new Map([
  [2, 97],
  [3, 99],
  [4, 95],
])
const regulars = 30
/** Of this many paid orders one is refunded, and of the next number one in part. */
const returnedEach = 17
const halfReturnedEach = 29
/** How many days ago the orders were made whose refunds still wait for a signature. */
const unsignedDays = 5

const wares = [
  ['Filter coffee, 1 kg', '34.00'],
  ['Espresso blend, 500 g', '19.50'],
  ['Two mugs', '28.00'],
  ['Pour-over set', '64.90'],
  ['Hand grinder', '119.00'],
  ['Filter papers', '6.40'],
  ['Tasting box', '42.00'],
  ['Gift card', '50.00'],
] as const

/** Orders of the days before today, the oldest first, without the steps that are still in the future. */
export function planOrders(now: Date, days = historyDays): Order[] {
  const draw = openDraw('demo')
  const today = Math.floor(now.getTime() / dayMs) * dayMs
  const orders: Order[] = []
  for (let back = days; back >= 1; back--) {
    const dawn = today - back * dayMs
    const isWeekend = [0, 6].includes(new Date(dawn).getUTCDay())
    const count = (isWeekend ? 2 : 3) + draw(3) + Math.floor((days - back) / 20)
    const minutes = Array.from({ length: count }, () => 420 + draw(840)).toSorted((a, b) => a - b)
    for (const [i, minute] of minutes.entries()) {
      const kind = (i === 0 && waiting.get(back)) || draw(100)
      orders.push(planOrder(1001 + orders.length, dawn + minute * minuteMs, back, kind, draw))
    }
  }
  return orders.map((order) => ({ ...order, steps: order.steps.filter(({ at }) => at < now) }))
}

/** Of a hundred orders, most are paid, some are abandoned, and a few need the store's attention. */
function planOrder(
  number: number,
  madeMs: number,
  back: number,
  kind: number,
  draw: (below: number) => number,
): Order {
  const [description, price] = wares[draw(wares.length)] ?? wares[0]
  const currency = draw(10) < 7 ? 'USD' : 'EUR'
  const input = { orderId: `${number}`, priceAmount: price, priceCurrency: currency, description }
  const payer = `0x${createHash('sha256')
    .update(`${description} ${draw(regulars)}`)
    .digest('hex')
    .slice(0, 40)}` as const
  const overMs = madeMs + lifetimeMs[currency] + 1_000
  // Most pay at once, some come back to it.
  const paidMs = madeMs + 25_000 + draw(60_000) + (draw(6) === 0 ? draw(35) * minuteMs : 0)
  const isDecided = back > undecidedDays
  const at = (ms: number, does: OrderStep['does']): OrderStep => ({ at: new Date(ms), does })
  const made = at(madeMs, 'create')
  const order = (percent: number, ...steps: readonly OrderStep[]): Order => ({
    number,
    input,
    payer,
    percent,
    steps: [made, ...steps],
  })
  const decision = (ms: number, does: 'accept' | 'dismiss') =>
    isDecided ? [at(ms + (60 + draw(300)) * minuteMs, does)] : []
  if (kind < 78) return order(100, at(paidMs, 'pay'), ...planReturn(number, paidMs, back))
  if (kind < 82) return order(100, at(madeMs + 20_000, 'refuse'), at(paidMs + 90_000, 'pay'))
  if (kind < 90) return order(0, at(overMs, 'expire'))
  if (kind < 93) return order(0, at(madeMs + (2 + draw(30)) * minuteMs, 'cancel'))
  if (kind < 96) {
    const lateMs = overMs + (5 + draw(90)) * minuteMs
    return order(100, at(overMs, 'expire'), at(lateMs, 'pay'), ...decision(lateMs, 'accept'))
  }
  if (kind < 98)
    return order(80 + draw(18), at(paidMs, 'pay'), ...decision(paidMs, 'dismiss'), at(overMs, 'expire'))
  return order(5 + draw(40), at(paidMs, 'stray'), at(overMs, 'expire'))
}

/** Some goods come back after a few days. */
function planReturn(number: number, paidMs: number, back: number): OrderStep[] {
  const at = new Date(paidMs + 2 * dayMs + (number % 300) * minuteMs)
  if (back === unsignedDays) return number % 2 === 0 ? [{ at, does: 'ask-refund' }] : []
  if (number % returnedEach === 0) return [{ at, does: 'refund' }]
  return number % halfReturnedEach === 0 ? [{ at, does: 'refund-half' }] : []
}

/** Whole numbers derived from a word, spread evenly enough for a demo. */
function openDraw(seed: string): (below: number) => number {
  let count = 0
  return (below) => createHash('sha256').update(`${seed} ${count++}`).digest().readUInt32BE() % below
}
