import type { PaymentRequirements } from '@farthing/sdk'
import type { Offer, Rails } from './rail.ts'

/**
 * How long a signed payment may be valid, from now. Whoever holds it can cash it, and it keeps the checkout busy
 * meanwhile.
 */
export const maxTimeoutSeconds = 300

/** Offers as x402 payment requirements. One that cannot be paid now is left out. */
export async function toTerms(
  rails: Rails,
  checkoutId: string,
  offers: readonly Offer[],
): Promise<PaymentRequirements[]> {
  const terms = await Promise.all(
    offers.map((offer) => rails.get(offer.network)?.toTerms(checkoutId, offer) ?? null),
  )
  return terms.filter((one) => one !== null)
}
