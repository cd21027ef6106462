import type { Chain } from '../../chains/evm/chain.ts'
import type { Signer } from '../../chains/evm/signer.ts'
import type { Hex } from '../../chains/hex.ts'
import { RpcAnswerError, RpcUnavailableError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import { noteForeign } from '../settlers/foreign-rows.ts'
import type { Uncosted } from '../settlers/gas-rows.ts'
import { reportForeign } from '../settlers/report-foreign.ts'

/** Nodes have a receipt within seconds of its block. */
const receiptSecondsMax = 15
/** A search asks some ten questions. */
const restMs = 5_000
const searchesMax = 3
/** How many more blocks are searched than the time since then allows for: our clock, or the chain's, may be off. */
const blocksSpare = { times: 4, more: 16 }

type Doubting = { readonly chain: Chain; readonly signer: Signer; doubtsRestUntil?: number }
type Found = { readonly hash: Hex; readonly from: Hex; readonly nonce: Hex }

/**
 * Looks at nonces that are used, although no transaction of ours that has them was found: if another transaction with the
 * settler's signature is on the chain, somebody else has its key, and the settler is stopped. A missing receipt alone
 * proves nothing, because nodes lag and forget.
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
    const txHash = await findUse(chain, signer.address, one).catch((error) => {
      if (!(error instanceof RpcAnswerError) && !(error instanceof RpcUnavailableError)) throw error
      return null
    })
    if (txHash === null || one.hashes.includes(txHash)) continue
    if (await noteForeign(ctx.db, network, signer.address, one.nonce))
      reportForeign(ctx, { network, settler: signer.address, nonce: one.nonce, txHash })
  }
}

/** The transaction that used a nonce, if enough providers have it. Null if it is not found. */
async function findUse(
  { rpc, network }: Chain,
  address: Hex,
  { nonce, minedAgoSeconds }: Uncosted,
): Promise<Hex | null> {
  const hex = (number: number): Hex => `0x${number.toString(16)}`
  const isUsedAt = async (block: number) =>
    Number.parseInt(await rpc.call<Hex>('eth_getTransactionCount', [address, hex(block)]), 16) > nonce
  const head = Number.parseInt(await rpc.call<Hex>('eth_blockNumber', []), 16)
  const blocks = (minedAgoSeconds * 1_000 * blocksSpare.times) / network.blockTimeMs + blocksSpare.more
  let [before, by] = [Math.max(0, head - Math.ceil(blocks)), head]
  if (!(await isUsedAt(by)) || (await isUsedAt(before))) return null
  while (by - before > 1) {
    const middle = (before + by) >> 1
    if (await isUsedAt(middle)) by = middle
    else before = middle
  }
  const block = await rpc.call<{ transactions?: readonly (Found | null)[] } | null>('eth_getBlockByNumber', [
    hex(by),
    true,
  ])
  // Whatever one provider says, it must not break the lane: others may have no such transaction.
  const isUse = (found: Found | null) =>
    String(found?.from).toLowerCase() === address && Number.parseInt(String(found?.nonce), 16) === nonce
  const hash = Array.isArray(block?.transactions) ? block.transactions.find(isUse)?.hash : null
  if (!hash) return null
  const told = await rpc.callAll<Found | null>('eth_getTransactionByHash', [hash])
  return told.filter(isUse).length >= network.witnessesMin ? hash : null
}
