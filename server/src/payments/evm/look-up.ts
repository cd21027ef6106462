import type { Chain } from '../../chains/evm/chain.ts'
import { readBlocksAgain } from '../../chains/evm/follower.ts'
import type { Hex } from '../../chains/hex.ts'
import { lockFollower, readTip } from '../../chains/rows.ts'
import type { Context } from '../../context.ts'
import type { UpdateStatus } from '../rail.ts'
import { decidePasted, listPasted, type Pasted, writePasted } from '../transfers/paste-rows.ts'
import { openListener } from './credit-blocks.ts'

/** What is not in a block by then will not be, or is not ours to wait for. */
const patienceMinutes = 30
const againSeconds = 3
const lookedUpPerRun = 20
/** More people than this do not name the same transaction by mistake. */
const hintsPerPaymentMax = 10

/**
 * Reads the transactions that buyers name as theirs, block and all, once more and from every node. What counts as a
 * payment stays as it is: naming a transaction only makes us look, and what it did not pay it becomes a hint for.
 */
export async function lookUpPasted(ctx: Context, chain: Chain, updateStatus: UpdateStatus): Promise<number> {
  const network = chain.network.caip2
  const pasted = await listPasted(ctx.db, network, patienceMinutes, againSeconds, lookedUpPerRun)
  for (const each of pasted) await lookUp(ctx, chain, each, updateStatus)
  if (pasted.length > 0) ctx.db.wakeUps.send('outcomes')
  return pasted.length
}

type Receipt = { readonly blockHash: Hex; readonly blockNumber: Hex }

async function lookUp(ctx: Context, chain: Chain, pasted: Pasted, updateStatus: UpdateStatus): Promise<void> {
  const network = chain.network.caip2
  if (await resolvePasted(ctx, network, pasted)) return
  const receipts = await chain.rpc.callAll<Receipt | null>('eth_getTransactionReceipt', [pasted.hash])
  const found = receipts.filter((receipt) => receipt !== null)
  const blocks = new Set(found.map(({ blockHash }) => blockHash.toLowerCase() as Hex))
  if (blocks.size > 0) await readBlocksAgain(ctx, chain, [...blocks], openListener(ctx, chain, updateStatus))
  if (await resolvePasted(ctx, network, pasted)) return
  const tip = await readTip(ctx.db, network)
  const isRead =
    tip !== null && found.some(({ blockNumber }) => Number.parseInt(blockNumber, 16) <= tip.number)
  // In no block, or in one that we have not read yet: the next look may find it.
  if (isRead || pasted.isOld) await writePasted(ctx.db, network, pasted, 'not_found')
}

/** True if there was something to judge. */
async function resolvePasted(ctx: Context, network: string, pasted: Pasted): Promise<boolean> {
  return await ctx.db.transaction(async (tx) => {
    await lockFollower(tx, network)
    const outcome = await decidePasted(tx, network, pasted, hintsPerPaymentMax)
    if (outcome !== null) await writePasted(tx, network, pasted, outcome)
    return outcome !== null
  })
}
