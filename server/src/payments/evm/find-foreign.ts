import { findUse } from '../../chains/evm/accounts.ts'
import type { Chain } from '../../chains/evm/chain.ts'
import type { Signer } from '../../chains/evm/signer.ts'
import { isNodeError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import { noteForeign, reportForeign } from '../settlers/foreign-nonces.ts'
import type { Uncosted } from '../settlers/rows.ts'

/** Nodes have a receipt within seconds of its block. */
const receiptSecondsMax = 15
/** A search takes about ten requests, and twice as many if the nonce was used a day ago. */
const restMs = 5_000
const searchesMax = 3

type Doubting = { readonly chain: Chain; readonly signer: Signer; doubtsRestUntil?: number }

/**
 * Checks nonces that are used although none of our transactions with them was found mined. If another transaction with
 * the settler's signature is on the chain, somebody else has its key, and the settler is stopped. A missing receipt
 * alone proves nothing, because nodes lag and forget.
 */
export async function findForeign(
  ctx: Context,
  lane: Doubting,
  withoutReceipt: readonly Uncosted[],
): Promise<void> {
  const doubted = withoutReceipt.filter((one) => one.isComplete && one.minedAgoSeconds > receiptSecondsMax)
  const now = ctx.now().getTime()
  if (doubted.length === 0 || now < (lane.doubtsRestUntil ?? 0)) return
  lane.doubtsRestUntil = now + restMs
  const { chain, signer } = lane
  const network = chain.network.caip2
  for (const one of doubted.slice(0, searchesMax)) {
    const txHash = await findUse(chain, signer.address, one.nonce).catch((error) => {
      if (!isNodeError(error)) throw error
      return null
    })
    if (txHash === null || one.hashes.includes(txHash)) continue
    if (await noteForeign(ctx.db, network, signer.address, one.nonce))
      reportForeign(ctx, { network, settler: signer.address, nonce: one.nonce, txHash })
  }
}
