import type { Checkout } from './checkout.ts'

/** Longer names and order ids are cut, so that the price and the time after them stay in sight. */
const charactersMax = 60

/**
 * A checkout in one line of plain text, for a person or program that is about to pay it. The store chose its name and
 * the order's id, and they may be read by a language model or printed to a terminal: control characters, line breaks,
 * and characters that are invisible or reorder text are taken out. The API gives the order's id exactly as it was sent.
 */
export function describeCheckout(checkout: Checkout, storeName: string): string {
  const { id, orderId, priceAmount, priceCurrency, expiresAt } = checkout
  const until = expiresAt.toISOString().replace(/\.\d{3}Z$/, 'Z')
  return `Checkout ${id} of ${toPlain(storeName)}: ${priceAmount} ${priceCurrency} for order ${toPlain(orderId)}, payable until ${until}`
}

function toPlain(text: string): string {
  const shown = text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  const characters = [...shown]
  return characters.length > charactersMax ? `${characters.slice(0, charactersMax - 1).join('')}…` : shown
}
