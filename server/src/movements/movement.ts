import type { Actor, Disposition } from '@farthing/sdk'
import { decimalsOf, toStored } from '../chains/families.ts'
import type { CheckoutId, MovementId, RefundId, StoreId } from '../ids.ts'
import { parseDecimal, unitsToText } from '../money.ts'
import type { Quote } from '../rates/quote.ts'

/**
 * One line for each thing that happened to a store's money, written when it is final and never changed afterwards.
 *
 * `payment`, `refund`: money that came or went, in a final block. `payment_reversed`, `refund_reversed`: the chain took
 * it back for good although it was final. `payment_ceded`: another store that shares the wallet accepted the payment.
 * `acceptance`, `dismissal`: the store's decision; the amount is 0. `refund_declared`: the store says that it paid back
 * outside of what we see; no wallet moved, so the line has none. A line with a wallet is a change of its balance.
 *
 * Stores never pay for gas: settlers do. So there is no line for it.
 */
export const movementTypes = [
  'payment',
  'payment_reversed',
  'payment_ceded',
  'acceptance',
  'dismissal',
  'refund',
  'refund_reversed',
  'refund_declared',
] as const
export type MovementType = (typeof movementTypes)[number]

export type Movement = {
  readonly storeId: StoreId
  /** 1, 2, 3 … without gaps in each store. */
  readonly number: number
  readonly id: MovementId
  readonly type: MovementType
  /** When its block came, or when somebody decided. */
  readonly happenedAt: Date
  /** Decides which month it belongs to. Never smaller than that of the line before. */
  readonly bookedAt: Date
  readonly network: string
  /** In stored form, like every address here. */
  readonly asset: string
  /** In the asset's smallest unit; negative if it went away. */
  readonly amount: bigint
  readonly wallet: string | null
  readonly transaction: string | null
  /** The log's index in its block, or the place of the transfer in a transaction that the store sent by itself. */
  readonly place: number | null
  readonly paymentId: string
  readonly refundId: RefundId | null
  readonly checkoutId: CheckoutId | null
  readonly orderId: string | null
  readonly priceAmount: string | null
  readonly priceCurrency: string | null
  /** What one unit of the price's currency was worth in dollars when the checkout was made; null for dollars. */
  readonly rate: string | null
  readonly rateSource: string | null
  readonly rateTime: Date | null
  /** The number of the line that this one takes back. */
  readonly reverses: number | null
  readonly actor: Pick<Actor, 'type' | 'id'> | null
  readonly disposition: Disposition | null
  /** With at most six decimals; null if there was no reliable rate. */
  readonly value: string | null
  /** The currency that the store reported in then. */
  readonly valueCurrency: string
  /** What one token was worth, of which the value is the amount's share, cut after six decimals; null: it is the price. */
  readonly valueRate: string | null
  /** `price`; `par`, because a token counts as a dollar; or the source of the rate. */
  readonly valueRateSource: string | null
  readonly valueRateTime: Date | null
}

export type Value = Pick<Movement, 'value' | 'valueRate' | 'valueRateSource' | 'valueRateTime'>

const valueDecimals = 6
const rateDecimals = 12

export const noValue: Value = { value: null, valueRate: null, valueRateSource: null, valueRateTime: null }

/** The value of units of a token at today's rate. `quote` is null if there is none for this currency. */
export function valueAtRate(
  { network, asset, amount }: Pick<Movement, 'network' | 'asset' | 'amount'>,
  currency: string,
  quote: Quote | null,
): Value {
  if (currency !== 'USD' && quote === null) return noValue
  const rate = quote === null ? 10n ** BigInt(rateDecimals) : perDollar(quote)
  const cut = 10n ** BigInt(decimalsOf(network, asset) + rateDecimals - valueDecimals)
  return {
    value: signedText((amount * rate) / cut, valueDecimals),
    valueRate: unitsToText(rate, rateDecimals),
    valueRateSource: quote === null ? 'par' : quote.source,
    valueRateTime: quote === null ? null : quote.asOf,
  }
}

/** How much of the currency one dollar is worth: the opposite of how prices are converted. */
function perDollar({ perBase, usdPerBase }: Quote): bigint {
  const [per, usd] = [parseDecimal(perBase), parseDecimal(usdPerBase)]
  return (
    (per.coefficient * 10n ** BigInt(usd.scale + rateDecimals)) / (usd.coefficient * 10n ** BigInt(per.scale))
  )
}

/** The part of a price that is as large as `part` of `whole`, with its sign. */
export function shareOfPrice(price: string, part: bigint, whole: bigint): Value {
  const { coefficient, scale } = parseDecimal(price)
  const millionths = (coefficient * 10n ** BigInt(valueDecimals) * part) / (whole * 10n ** BigInt(scale))
  return {
    value: signedText(millionths, valueDecimals),
    valueRate: null,
    valueRateSource: 'price',
    valueRateTime: null,
  }
}

export function signedText(units: bigint, decimals: number): string {
  return units < 0n ? `-${unitsToText(-units, decimals)}` : unitsToText(units, decimals)
}

/** A plain transfer may exceed its price by this much, because that identifies it (decision 0018). */
const tailMax = 9_999n

type Option = {
  readonly network: string
  readonly asset: string
  readonly payTo: string
  readonly amount: string
}

/** Whether this amount is what the checkout asked for on this network. */
export function isFull(
  { network, asset, amount }: Pick<Movement, 'network' | 'asset' | 'amount'>,
  options: readonly Option[],
): boolean {
  const offer = options.find((each) => each.network === network && toStored(network, each.asset) === asset)
  const asked = offer ? BigInt(offer.amount) : null
  return asked !== null && amount >= asked && amount - asked <= tailMax
}
