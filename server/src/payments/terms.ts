import { createHash } from 'node:crypto'
import type { PaymentRequirements } from '@farthing/sdk'
import { networks } from '../chains/networks.ts'
import type { Context } from '../context.ts'
import type { Offer } from './rail.ts'
import { type FeePayers, openFeePayers } from './svm/fee-payers.ts'
import { maxTimeoutSeconds } from './verify.ts'

/** Offers in the protocol's words. One that cannot be said now is left out. */
export type Terms = (checkoutId: string, offers: readonly Offer[]) => Promise<PaymentRequirements[]>

export function openTerms(ctx: Context): Terms {
  const feePayers = openFeePayers(ctx)
  return async (checkoutId, offers) => {
    const said = await Promise.all(
      offers.map(async (offer) => toRequirements(offer) ?? (await nameSettler(feePayers, checkoutId, offer))),
    )
    return said.filter((terms) => terms !== null)
  }
}

/** An offer that says everything by itself; null for others, and if its token was taken out of the table meanwhile. */
function toRequirements(offer: Offer): PaymentRequirements | null {
  const network = networks.find(({ caip2 }) => caip2 === offer.network)
  if (network?.family !== 'EVM') return null
  const extra = network.assets.find(({ address }) => address === offer.asset)?.domain
  return extra ? { scheme: 'exact', ...offer, maxTimeoutSeconds, extra } : null
}

/**
 * On Solana the payer signs who pays the fee, and for which checkout: a settler of ours and a memo. A checkout keeps to
 * its settler while that one is running; any other that takes payments would be accepted too.
 */
async function nameSettler(
  feePayers: FeePayers,
  checkoutId: string,
  offer: Offer,
): Promise<PaymentRequirements | null> {
  const network = networks.find(({ caip2 }) => caip2 === offer.network)
  if (!network?.assets.some(({ address }) => address === offer.asset)) return null
  const all = await feePayers(offer.network)
  const running = all.filter(({ isAlive }) => isAlive)
  const choice = running.length > 0 ? running : all
  const place = createHash('sha256').update(checkoutId).digest().readUInt32BE() % Math.max(choice.length, 1)
  const feePayer = choice[place]?.address
  return feePayer === undefined
    ? null
    : { scheme: 'exact', ...offer, maxTimeoutSeconds, extra: { feePayer, memo: checkoutId } }
}
