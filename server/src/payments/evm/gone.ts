import type { Chain } from '../../chains/evm/chain.ts'
import { readBlocksAgain } from '../../chains/evm/read-again.ts'
import { isNonceUsed, readInclusion } from '../../chains/evm/transactions.ts'
import type { Hex } from '../../chains/hex.ts'
import { readDeepBlock } from '../../chains/rows.ts'
import type { Context } from '../../context.ts'
import { listOrphanedTransfers, type OrphanedTransfer, reverseOrphanedTransfers } from '../credits/rows.ts'
import type { UpdateStatus } from '../rail.ts'
import { openListener } from './credit-blocks.ts'
import { lookAtEach } from './look-at-each.ts'

/** A wallet that still has the transaction sends it again sooner than this. */
const oldMinutes = 30
const lookedAtPerRun = 50

/**
 * Gives up plain transfers that a reorganisation removed: once, by a deep block, their sender has used the same
 * account nonce for something else, or after half an hour. As many nodes as the network requires must confirm that the
 * transaction is in no block; if one has it, that block is read again. The amount stays reserved, so a transfer that
 * lands later is still credited.
 */
export async function reverseGone(ctx: Context, chain: Chain, updateStatus: UpdateStatus): Promise<number> {
  const { caip2: network } = chain.network
  const candidates = await listOrphanedTransfers(ctx.db, network, oldMinutes, lookedAtPerRun)
  if (candidates.length === 0) return 0
  const deep = await readDeepBlock(ctx.db, chain.network)
  if (!deep) return 0
  const gone: Hex[] = []
  await lookAtEach(ctx, chain.network, candidates, async (candidate) => {
    if (!candidate.isOld && !(await isReplaced(chain, candidate, deep.number))) return
    const { named, isAbsent } = await readInclusion(chain, candidate.transactionHash)
    if (named.length > 0) await readBlocksAgain(ctx, chain, named, openListener(ctx, chain, updateStatus))
    else if (isAbsent) gone.push(candidate.transactionHash)
  })
  if (gone.length === 0) return 0
  const reversed = await ctx.db.transaction(async (tx) => {
    const changed = await reverseOrphanedTransfers(tx, network, gone)
    if (changed.length > 0) await updateStatus(tx, changed, ctx.now())
    return changed.length
  })
  ctx.db.wakeUps.send('outcomes')
  return reversed
}

/** Whether, by this block, the sender has used its account nonce: for another transaction, because ours is in no block. */
async function isReplaced(
  chain: Chain,
  { sender, senderNonce }: OrphanedTransfer,
  blockNumber: number,
): Promise<boolean> {
  if (sender === null || senderNonce === null) return false
  return await isNonceUsed(chain, { address: sender, nonce: senderNonce }, blockNumber)
}
