import { find, Stop } from '../show.ts'
import { type Family, type Option, terms } from '../terms.ts'

/** The ways to pay that are currently open to wallets of a family. */
export function offersFor<F extends Family>(family: F): Extract<Option, { family: F }>[] {
  const now = terms()
  if (now?.status !== 'OPEN') throw new Stop('changed')
  return now.options.filter((option) => option.family === family) as Extract<Option, { family: F }>[]
}

/** Makes sure that the buyer signs what the page shows, by reading address, amount and network back from its text. */
export function checkIsShown({ accepted, place, decimals, name }: Option): void {
  const text = (part: string) => find(`[data-${part}="${place}"]`)?.textContent ?? ''
  const [whole = '', fraction = ''] = text('amount').split('.')
  const isShown =
    whole + fraction.padEnd(decimals, '0') === accepted.amount.padStart(decimals + 1, '0') &&
    text('address').replace(/\s/g, '') === accepted.payTo &&
    text('network') === name
  if (!isShown) throw new Stop('changed')
  // Later messages name this network.
  for (const part of document.querySelectorAll('[data-chosen]')) part.textContent = name
}

/** The PAYMENT-SIGNATURE header of x402 version 2. */
export function paymentHeader({ accepted }: Option, payload: object): string {
  return btoa(JSON.stringify({ x402Version: 2, accepted, payload }))
}
