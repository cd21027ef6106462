import { find, Stop } from '../show.ts'
import { type Family, type Option, terms } from '../terms.ts'

/** What can be paid now with wallets of a family. */
export function offersFor<F extends Family>(family: F): Extract<Option, { family: F }>[] {
  const now = terms()
  if (now?.status !== 'OPEN') throw new Stop('changed')
  return now.options.filter((option) => option.family === family) as Extract<Option, { family: F }>[]
}

/** What is signed is what the buyer sees: address, amount and network are read back from the text on the page. */
export function checkIsShown({ accepted, place, decimals, name }: Option): void {
  const text = (part: string) => find(`[data-${part}="${place}"]`)?.textContent ?? ''
  const [whole = '', fraction = ''] = text('amount').split('.')
  const isShown =
    whole + fraction.padEnd(decimals, '0') === accepted.amount.padStart(decimals + 1, '0') &&
    text('address').replace(/\s/g, '') === accepted.payTo &&
    text('network') === name
  if (!isShown) throw new Stop('changed')
  // What is said from here on is about this network.
  for (const part of document.querySelectorAll('[data-chosen]')) part.textContent = name
}

/** The PAYMENT-SIGNATURE header of x402 version 2. */
export function paymentHeader({ accepted }: Option, payload: object): string {
  return btoa(JSON.stringify({ x402Version: 2, accepted, payload }))
}
