import type { Chain } from '../../chains/evm/chain.ts'
import { readBlocksAgain } from '../../chains/evm/read-again.ts'
import { readInclusion } from '../../chains/evm/transactions.ts'
import { lockFollower, readTip } from '../../chains/rows.ts'
import type { Context } from '../../context.ts'
import type { UpdateStatus } from '../rail.ts'
import { decidePasted, listPasted, type Pasted, pasteLimits, writePasted } from '../transfers/paste.ts'
import { openListener } from './credit-blocks.ts'
import { lookAtEach } from './look-at-each.ts'

/** Two blocks: by then most transactions that were still on their way are in one. */
const againSeconds = 3
const lookedUpPerRun = 20
/** No more people than this would paste the same transaction by mistake. */
const hintsPerPaymentMax = 10

/**
 * Looks up transactions that buyers paste as theirs, and reads their blocks again from every node. This does not change
 * what counts as a payment: pasting a transaction only makes us look, and if it did not pay the checkout, it can only
 * become a hint.
 */
export async function lookUpPasted(ctx: Context, chain: Chain, updateStatus: UpdateStatus): Promise<number> {
  const network = chain.network.caip2
  const pasted = await listPasted(ctx.db, network, pasteLimits.patienceMinutes, againSeconds, lookedUpPerRun)
  await lookAtEach(ctx, chain.network, pasted, (each) => lookUp(ctx, chain, each, updateStatus))
  if (pasted.length > 0) ctx.db.wakeUps.send('outcomes')
  return pasted.length
}

async function lookUp(ctx: Context, chain: Chain, pasted: Pasted, updateStatus: UpdateStatus): Promise<void> {
  const network = chain.network.caip2
  if (await resolvePasted(ctx, network, pasted)) return
  const { named, number } = await readInclusion(chain, pasted.hash)
  if (named.length > 0) await readBlocksAgain(ctx, chain, named, openListener(ctx, chain, updateStatus))
  if (await resolvePasted(ctx, network, pasted)) return
  const tip = await readTip(ctx.db, network)
  const isRead = tip !== null && number !== null && number <= tip.number
  // Otherwise it is in no block, or in one that we have not read yet, and the next lookup may find it.
  if (isRead || pasted.isOld) await writePasted(ctx.db, network, pasted, 'not_found')
}

/** Writes the outcome if it can be decided now. Returns whether it could. */
async function resolvePasted(ctx: Context, network: string, pasted: Pasted): Promise<boolean> {
  return await ctx.db.transaction(async (tx) => {
    await lockFollower(tx, network)
    const outcome = await decidePasted(tx, network, pasted, hintsPerPaymentMax)
    if (outcome !== null) await writePasted(tx, network, pasted, outcome)
    return outcome !== null
  })
}
