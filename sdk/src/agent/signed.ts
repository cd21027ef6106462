import type { Offer } from './offer.ts'

/**
 * A signed payment as it is kept: the header, and on Solana the time until which it can move money. An authorization on
 * EVM networks says that itself.
 */

/** The chain's clock may be behind this machine's. */
const clockMs = 60_000
/** A Solana transaction lives for 150 blocks: about half a minute, and less than this. */
const transactionMs = 180_000

export function withLife(header: string, offer: Offer): string {
  return offer.transaction === null ? header : `${header}.${Date.now() + transactionMs}`
}

/** `usableUntil` in milliseconds; 0 if the payment is none that this package has signed. */
export function readSigned(payment: string): { readonly header: string; readonly usableUntil: number } {
  const [header = '', until] = payment.split('.')
  if (until !== undefined) return { header, usableUntil: Number.parseInt(until, 10) || 0 }
  const seconds = Number.parseInt(validBeforeIn(header), 10)
  return { header, usableUntil: Number.isSafeInteger(seconds) ? seconds * 1_000 + clockMs : 0 }
}

function validBeforeIn(header: string): string {
  try {
    const { payload } = JSON.parse(atob(header)) as {
      payload?: { authorization?: { validBefore?: unknown } }
    }
    return String(payload?.authorization?.validBefore)
  } catch {
    // Something else was kept: nothing is known of its life.
    return ''
  }
}
