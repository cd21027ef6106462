import { find } from '../show.ts'
import { type Family, type Option, terms } from '../terms.ts'
import { Stop } from '../trouble.ts'

/** The option that the page shows, for a wallet of this family. Stops if it is another now. */
export function offerFor<F extends Family>(family: F): Extract<Option, { family: F }> {
  const now = terms()
  const option = now?.options.find(({ place }) => place === now.chosen)
  if (!now?.isPayable || option?.family !== family) throw new Stop('changed')
  return option as Extract<Option, { family: F }>
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
}

/** The PAYMENT-SIGNATURE header of x402 version 2. */
export function paymentHeader({ accepted }: Option, payload: object): string {
  return btoa(JSON.stringify({ x402Version: 2, accepted, payload }))
}
