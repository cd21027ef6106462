import type { PaymentRequirements } from '@farthing/sdk'
import { parseSolanaAddress } from '../../chains/svm/address.ts'
import { readForPayment, type SvmChain } from '../../chains/svm/chain.ts'
import { findTokenAccount } from '../../chains/svm/transfer.ts'
import { writeExact } from '../../chains/svm/write.ts'
import type { Prepared } from '../rail.ts'

/** Builds the transaction that pays these terms, so that the payer only has to sign it. */
export async function preparePayment(
  chain: SvmChain,
  { network, asset, payTo, amount, extra }: PaymentRequirements,
  payer: string,
): Promise<Prepared> {
  const token = chain.network.assets.find(({ address }) => address === asset)
  if (network !== chain.network.caip2 || !token || !('feePayer' in extra))
    return { refusal: 'invalid_payment_requirements' }
  // The fee payer may pay nothing else.
  if ('refusal' in parseSolanaAddress(payer) || payer === extra.feePayer)
    return { refusal: 'invalid_payload' }
  const { units, ...lifetime } = await readForPayment(chain, await findTokenAccount(payer, asset))
  if (units < BigInt(amount)) return { refusal: 'insufficient_funds' }
  const transaction = await writeExact({
    ...extra,
    ...lifetime,
    payer,
    mint: asset,
    decimals: token.decimals,
    payTo,
    amount: BigInt(amount),
  })
  return { transaction: Buffer.from(transaction).toString('base64') }
}
