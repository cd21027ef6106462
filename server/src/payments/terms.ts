import type { PaymentRequirements } from '@farthing/sdk'
import { networks } from '../chains/networks.ts'
import type { Offer } from './rail.ts'
import { maxTimeoutSeconds } from './verify.ts'

/** An offer in the protocol's words; null if its token was taken out of the table after the checkout was made. */
export function toRequirements(offer: Offer): PaymentRequirements | null {
  const network = networks.find(({ caip2 }) => caip2 === offer.network)
  if (network?.family !== 'EVM') return null
  const extra = network.assets.find(({ address }) => address === offer.asset)?.domain
  return extra ? { scheme: 'exact', ...offer, maxTimeoutSeconds, extra } : null
}
