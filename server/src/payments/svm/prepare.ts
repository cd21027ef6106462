import { createHash } from 'node:crypto'
import type { PaymentRequirements } from '@farthing/sdk'
import { parseSolanaAddress } from '../../chains/svm/address.ts'
import { readForPayment, type SvmChain } from '../../chains/svm/chain.ts'
import { findTokenAccount } from '../../chains/svm/transfer.ts'
import { priceUnits, writeExact } from '../../chains/svm/write.ts'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import type { SolanaNetwork } from '../../networks.ts'
import { maxTimeoutSeconds, type Offer, type Prepared } from '../rail.ts'
import type { FeePayers } from './rows.ts'
import { blockhashExpired } from './simulate.ts'

/** Builds the transaction that pays these terms, so that the payer only has to sign it. */
export async function preparePayment(
  ctx: Context,
  chain: SvmChain,
  { network, asset, payTo, amount, extra }: PaymentRequirements,
  payer: string,
): Promise<Prepared> {
  const token = chain.network.assets.find(({ address }) => address === asset)
  if (network !== chain.network.caip2 || !token || !('feePayer' in extra))
    return { refusal: 'invalid_payment_requirements' }
  // The fee payer must not pay for anything else.
  if ('refusal' in parseSolanaAddress(payer) || payer === extra.feePayer)
    return { refusal: 'invalid_payload' }
  const { units, ...lifetime } = await readForPayment(chain, await findTokenAccount(payer, asset))
  if (units < BigInt(amount)) return { refusal: 'insufficient_funds' }
  const unlanded = await countUnlanded(ctx.db, network, extra.memo)
  const transaction = await writeExact({
    ...extra,
    unitPrice: priceUnits(chain.network, unlanded),
    ...lifetime,
    payer,
    mint: asset,
    decimals: token.decimals,
    payTo,
    amount: BigInt(amount),
  })
  return { transaction: Buffer.from(transaction).toString('base64') }
}

/** How many payments of a checkout were sent but got into no block. */
async function countUnlanded(db: Database, network: string, checkoutId: string): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*)::integer as count from authorizations
     where checkout_id = $1 and network = $2 and state = 'dead' and sends > 0 and reason = $3`,
    [checkoutId, network, blockhashExpired],
  )
  return row?.count ?? 0
}

/**
 * The payer signs who pays the fee (one of our settlers) and which checkout the payment is for (a memo). A checkout
 * keeps its settler while that settler is running, but a payment that names any other active settler is also accepted.
 * Null if no settler is active, or if the token has since been removed from networks.ts.
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
