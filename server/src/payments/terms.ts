import type { PaymentRequirements } from '@farthing/sdk'
import type { Offer, Rails } from './rail.ts'

/**
 * How long a signed payment may stay valid from now. During that time anyone who holds it can cash it, and it keeps the
 * checkout busy.
 */
export const maxTimeoutSeconds = 300

/** The offers as x402 payment requirements, without those that cannot be paid now. */
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
