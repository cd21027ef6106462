import { isMost } from '../agree.ts'
import type { Hex } from '../hex.ts'
import type { Chain } from './chain.ts'

/** How many more blocks are searched than the time since then allows for: our clock, or the chain's, may be off. */
const blocksSpare = { times: 4, more: 16 }

type Found = { readonly hash: Hex; readonly from: Hex; readonly nonce: Hex }

/**
 * The transaction that used an account's nonce, if enough providers have it. Null if it is not found: one provider is asked
 * where to look, and it may hide it.
 */
export async function findUse(
  { rpc, network }: Chain,
  address: Hex,
  { nonce, minedAgoSeconds }: { readonly nonce: number; readonly minedAgoSeconds: number },
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
  // One provider's answer must not break the lane: others may have no such transaction.
  const isUse = (found: Found | null) =>
    String(found?.from).toLowerCase() === address && Number.parseInt(String(found?.nonce), 16) === nonce
  const hash = Array.isArray(block?.transactions) ? block.transactions.find(isUse)?.hash : null
  if (!hash) return null
  const told = await rpc.callAll<Found | null>('eth_getTransactionByHash', [hash])
  return isMost(told.filter(isUse).length, told.length, network.witnessesMin) ? hash : null
}
