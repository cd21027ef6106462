import { createHash } from 'node:crypto'
import type { PaymentRequirements } from '@farthing/sdk'
import type { SolanaNetwork } from '../../networks.ts'
import type { Offer } from '../rail.ts'
import { maxTimeoutSeconds } from '../terms.ts'
import type { FeePayers } from './fee-payers.ts'

/**
 * The payer signs who pays the fee (one of our settlers) and which checkout the payment is for (a memo). A checkout
 * keeps its settler while that settler is running, but any other active settler would be accepted too. Null if no
 * settler is active, or if the token has since been removed from networks.ts.
 */
export async function nameSettler(
  network: SolanaNetwork,
  feePayers: FeePayers,
  checkoutId: string,
  offer: Offer,
): Promise<PaymentRequirements | null> {
  if (!network.assets.some(({ address }) => address === offer.asset)) return null
  const all = await feePayers(offer.network)
  const running = all.filter(({ isAlive }) => isAlive)
  const choice = running.length > 0 ? running : all
  const place = createHash('sha256').update(checkoutId).digest().readUInt32BE() % Math.max(choice.length, 1)
  const feePayer = choice[place]?.address
  return feePayer === undefined
    ? null
    : { scheme: 'exact', ...offer, maxTimeoutSeconds, extra: { feePayer, memo: checkoutId } }
}
