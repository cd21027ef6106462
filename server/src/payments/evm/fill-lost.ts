import type { Chain } from '../../chains/evm/chain.ts'
import { readAgreedNonces, readNextNonces } from '../../chains/evm/finality.ts'
import type { AccountNonce } from '../../chains/evm/listener.ts'
import type { Signer } from '../../chains/evm/signer.ts'
import type { Context } from '../../context.ts'
import { insertFill } from '../settlers/rows.ts'
import { fillFees } from './fees.ts'

/**
 * Fills a nonce that was used, but of which nothing is known any more: after a restore its bytes are lost, and if the
 * chain or its nodes lost the transaction too, everything behind it would wait forever. Does nothing unless enough nodes
 * agree that they do not have it. Should the lost bytes turn up after all, one of the two is mined, and either is fine.
 */
export async function fillLost(
  ctx: Context,
  { chain, signer }: { readonly chain: Chain; readonly signer: Signer },
  nonce: number,
  baseFee: bigint,
): Promise<void> {
  const { address } = signer
  const isUnused = ([agreed]: readonly AccountNonce[]) =>
    agreed?.isWitnessed === true && agreed.nonce === nonce
  if (!isUnused(await readAgreedNonces(chain, [address], 'latest'))) return
  if (!isUnused(await readNextNonces(chain, [address]))) return
  const signed = await signer.sign(chain, {
    to: address,
    data: '0x',
    gas: 21_000n,
    nonce,
    ...fillFees(chain.network, baseFee),
  })
  ctx.log.warn(
    { network: chain.network.id, settler: address, nonce, txHash: signed.hash },
    'a settler’s nonce has no transaction, so an empty one fills it: everything behind it would wait. After a restore that is expected; otherwise find out who changed next_nonce',
  )
  // From here on the lane tends it like any other transaction that is no longer needed.
  await insertFill(ctx.db, { network: chain.network.caip2, settler: address, nonce, ...signed })
}
