import { isMost } from '../agree.ts'
import type { Hex } from '../hex.ts'
import type { Chain } from './chain.ts'

/**
 * How far back the search looks first, in blocks. The distance doubles until the nonce is still unused there, however
 * fast blocks come.
 */
const blocksBack = 64

type Found = { readonly hash: Hex; readonly from: Hex; readonly nonce: Hex }

/**
 * The transaction that used an account's nonce, if enough providers have it. Null if it is not found: only one provider
 * is asked where to look, and it may hide the transaction.
 */
export async function findUse({ rpc, network }: Chain, address: Hex, nonce: number): Promise<Hex | null> {
  const hex = (number: number): Hex => `0x${number.toString(16)}`
  const isUsedAt = async (block: number) =>
    Number.parseInt(await rpc.call<Hex>('eth_getTransactionCount', [address, hex(block)]), 16) > nonce
  const head = Number.parseInt(await rpc.call<Hex>('eth_blockNumber', []), 16)
  let [before, by] = [head, head]
  for (let back = blocksBack; await isUsedAt(before); back *= 2) {
    if (before === 0) return null
    by = before
    before = Math.max(0, head - back)
  }
  if (before === head) return null
  while (by - before > 1) {
    const middle = (before + by) >> 1
    if (await isUsedAt(middle)) by = middle
    else before = middle
  }
  const block = await rpc.call<{ transactions?: readonly (Found | null)[] } | null>('eth_getBlockByNumber', [
    hex(by),
    true,
  ])
  // An invalid answer from one provider must not stop the lane: the others may have no such transaction.
  const isUse = (found: Found | null) =>
    String(found?.from).toLowerCase() === address && Number.parseInt(String(found?.nonce), 16) === nonce
  const hash = Array.isArray(block?.transactions) ? block.transactions.find(isUse)?.hash : null
  if (!hash) return null
  const told = await rpc.callAll<Found | null>('eth_getTransactionByHash', [hash])
  return isMost(told.filter(isUse).length, told.length, network.witnessesMin) ? hash : null
}
