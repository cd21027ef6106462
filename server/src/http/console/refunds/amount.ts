import { toStored } from '../../../chains/families.ts'
import type { Checkout } from '../../../checkouts/checkout.ts'
import { parseDecimal, parsePrice } from '../../../money.ts'
import { invalid } from '../../../problems.ts'
import { minorDigitsOf } from '../../../rates/iso4217.ts'
import { isAmbiguous, toTyped, withPoint } from '../fields.ts'

/**
 * The amount on a refund's form. Where the price was converted, it is given in the order's currency, at the rate of the
 * payment: what the price is to what was due, the amount is to what goes back. It is rounded down, except that the most
 * that can be given in the currency means all that is left, so that no dust stays behind.
 */
export type PaidOrder = {
  readonly checkout: Checkout
  /** The price in the token that was paid. */
  readonly due: bigint
}

/** The unit in which an amount is given that is not in the order's currency. */
export const inToken = 'token'

export function orderOf(
  checkout: Checkout | null,
  { network, asset }: { readonly network: string; readonly asset: string },
): PaidOrder | null {
  const option = checkout?.options.find(
    (each) => each.network === network && toStored(network, each.asset) === asset,
  )
  return checkout && option ? { checkout, due: BigInt(option.amount) } : null
}

/** The currency in which amounts may be given besides the token; null if the price was not converted. */
export function currencyOf(order: PaidOrder | null): string | null {
  return order?.checkout.rate ? order.checkout.priceCurrency : null
}

/** Gold and others have no smallest unit: as many decimals as a price may have. */
const digitsWithoutMinor = 6

function digitsOf(currency: string): number {
  return minorDigitsOf(currency) ?? digitsWithoutMinor
}

/** Units of the token in the order's currency, rounded down to its smallest unit, as the form takes it. */
export function inCurrency({ checkout, due }: PaidOrder, units: bigint): string {
  const price = parseDecimal(checkout.priceAmount)
  const digits = digitsOf(checkout.priceCurrency)
  const amount = (units * price.coefficient * 10n ** BigInt(digits)) / (due * 10n ** BigInt(price.scale))
  return toTyped(amount, digits)
}

/** Units of the token in the order's currency, to the nearest of its smallest units; null if the price was not converted. */
export function nearCurrency(order: PaidOrder | null, units: bigint): string | null {
  if (order === null || currencyOf(order) === null) return null
  const price = parseDecimal(order.checkout.priceAmount)
  const digits = digitsOf(order.checkout.priceCurrency)
  const of = order.due * 10n ** BigInt(price.scale)
  return toTyped((2n * units * price.coefficient * 10n ** BigInt(digits) + of) / (2n * of), digits)
}

/** Converts the entered amount to the token's smallest unit. `left` is what can still go back. */
export function unitsOf(
  { amount: text, unit }: { readonly amount: string; readonly unit: string },
  decimals: number,
  order: PaidOrder | null,
  left: bigint,
): bigint {
  const isPriced = order !== null && unit !== inToken && unit === currencyOf(order)
  const digits = isPriced ? digitsOf(unit) : decimals
  if (isAmbiguous(text, digits))
    throw invalid({ pointer: '/amount', code: 'ambiguous', detail: 'Thousands or decimals?' })
  const entered = parsePrice(withPoint(text))
  // A unit that the form does not offer is refused, because the amount would mean something else.
  if (!entered || entered.scale > digits || (!isPriced && unit !== inToken))
    throw invalid({ pointer: '/amount', code: 'amount', detail: 'Must be an amount that can be refunded.' })
  if (!isPriced) return entered.coefficient * 10n ** BigInt(decimals - entered.scale)
  const most = parseDecimal(inCurrency(order, left))
  if (entered.coefficient * 10n ** BigInt(most.scale) === most.coefficient * 10n ** BigInt(entered.scale))
    return left
  const price = parseDecimal(order.checkout.priceAmount)
  return (
    (entered.coefficient * 10n ** BigInt(price.scale) * order.due) /
    (price.coefficient * 10n ** BigInt(entered.scale))
  )
}
