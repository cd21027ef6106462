import type { Checkout } from './checkout.ts'

/** Longer names are cut, so that the price and the time after the name stay in sight. */
const nameCharactersMax = 60

/**
 * A checkout in one line of plain text, for a person or program that is about to pay it. The store chose its name, and
 * it may be read by a language model or printed to a terminal: control characters, line breaks and characters that
 * reorder text are taken out. The order's id was checked for them when the checkout was created.
 */
export function describeCheckout(checkout: Checkout, storeName: string): string {
  const { id, orderId, priceAmount, priceCurrency, expiresAt } = checkout
  const until = expiresAt.toISOString().replace(/\.\d{3}Z$/, 'Z')
  return `Checkout ${id} of ${toPlain(storeName)}: ${priceAmount} ${priceCurrency} for order ${orderId}, payable until ${until}`
}

function toPlain(name: string): string {
  const shown = name
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  const characters = [...shown]
  return characters.length > nameCharactersMax
    ? `${characters.slice(0, nameCharactersMax - 1).join('')}…`
    : shown
}
