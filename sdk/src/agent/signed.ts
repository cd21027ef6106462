import { type Offer, quotedCheckoutIn } from './offer.ts'

/**
 * A signed payment as it is kept: the header, and on Solana the time until which it can move money. An authorization on
 * EVM networks contains that time.
 */

/** The chain's clock may be behind this machine's. */
const clockMs = 60_000
/** A Solana transaction lives for 150 blocks: about half a minute, and less than this. */
const transactionMs = 180_000

export function withLife(header: string, offer: Offer): string {
  return offer.transaction === null ? header : `${header}.${Date.now() + transactionMs}`
}

/** `usableUntil` in milliseconds; 0 if this package did not sign the payment. */
export function readSigned(payment: string): { readonly header: string; readonly usableUntil: number } {
  const [header = '', until] = payment.split('.')
  if (until !== undefined) return { header, usableUntil: Number.parseInt(until, 10) || 0 }
  const seconds = Number.parseInt(validBeforeIn(header), 10)
  return { header, usableUntil: Number.isSafeInteger(seconds) ? seconds * 1_000 + clockMs : 0 }
}

function validBeforeIn(header: string): string {
  return String(readHeader(header)?.payload?.authorization?.validBefore)
}

/** The checkout of a link that a payment was signed for; null if it was not signed for a link. */
export function checkoutSignedFor(header: string): string | null {
  return quotedCheckoutIn(readHeader(header)?.accepted)
}

type Header = {
  readonly accepted?: unknown
  readonly payload?: { readonly authorization?: { readonly validBefore?: unknown } }
}

function readHeader(header: string): Header | null {
  try {
    return JSON.parse(atob(header)) as Header | null
  } catch {
    // Something else was kept, and nothing is known about it.
    return null
  }
}

/** A store for signed payments, such as a Map. If it is on disk, a killed program resumes the payment it signed. */
export type KeptPayments = {
  get(name: string): string | undefined | Promise<string | undefined>
  set(name: string, payment: string): unknown
  delete(name: string): unknown
  /** Stores it unless there is one, and returns the one that is stored. Without it, `buy` is safe in one process only. */
  keep?(name: string, payment: string): Promise<string>
}
