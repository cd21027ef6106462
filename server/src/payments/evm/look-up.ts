import type { Chain } from '../../chains/evm/chain.ts'
import { readBlocksAgain } from '../../chains/evm/take.ts'
import { readOldBlocks } from '../../chains/evm/take-old.ts'
import { isNonceUsed, readInclusion } from '../../chains/evm/transactions.ts'
import type { Hex } from '../../chains/hex.ts'
import { readDeepBlock, readTip } from '../../chains/rows.ts'
import { isNodeError } from '../../chains/rpc.ts'
import type { Context } from '../../context.ts'
import type { EvmNetwork } from '../../networks.ts'
import { listOrphanedTransfers, type OrphanedTransfer, reverseOrphanedTransfers } from '../credits/rows.ts'
import type { UpdateStatus } from '../rail.ts'
import { endLookUp, listLookUps } from '../transfers/look-ups.ts'
import { listPasted, type Pasted, pasteLimits, resolvePasted, writePasted } from '../transfers/paste.ts'
import { openListener } from './credit-blocks.ts'

/** Two blocks: within this time most pending transactions get into one. */
const againSeconds = 3
const lookedUpPerRun = 20

/**
 * Looks up transactions that buyers pasted as theirs, and reads their blocks again from every node. This does not
 * change what counts as a payment. Pasting only makes us look again, and a transaction that did not pay the checkout
 * becomes a hint at most.
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
  // Otherwise it is in no block, or in one that we have not read yet. The next lookup may find it.
  if (isRead || pasted.isOld) await writePasted(ctx.db, network, pasted, 'not_found')
}

/**
 * Looks at transactions that the audit misses in the books, in the same way and with the same checks. Most are of days
 * past, in blocks that are not stored any more.
 */
export async function lookUpAsked(ctx: Context, chain: Chain, updateStatus: UpdateStatus): Promise<number> {
  const network = chain.network.caip2
  const asked = await listLookUps(ctx.db, network, lookedUpPerRun)
  await lookAtEach(ctx, chain.network, asked, async ({ hash, isOld }) => {
    const { named, number } = await readInclusion(chain, hash)
    const listener = openListener(ctx, chain, updateStatus)
    if (named.length > 0) {
      await readBlocksAgain(ctx, chain, named, listener)
      await readOldBlocks(ctx, chain, named, listener)
    }
    const tip = await readTip(ctx.db, network)
    const isRead = tip !== null && number !== null && number <= tip.number
    await endLookUp(ctx.db, network, hash, isRead || isOld)
  })
  return asked.length
}

/** A wallet that still has the transaction sends it again within this time. */
const oldMinutes = 30
const lookedAtPerRun = 50

/**
 * Gives up plain transfers that a reorganisation removed. This takes a deep block by which the sender has used the same
 * account nonce for something else, or half an hour. As many nodes as the network requires must also confirm that the
 * transaction is in no block; if a node has it, that block is read again. The amount stays reserved, so a transfer that
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

/**
 * Whether, by this block, the sender has used the transfer's account nonce. The transfer is in no block, so another
 * transaction used it.
 */
async function isReplaced(
  chain: Chain,
  { sender, senderNonce }: OrphanedTransfer,
  blockNumber: number,
): Promise<boolean> {
  if (sender === null || senderNonce === null) return false
  return await isNonceUsed(chain, { address: sender, nonce: senderNonce }, blockNumber)
}

/**
 * Looks at candidates one after another. If nodes fail at one, it is left for a later run, so that a payment about
 * which nodes can't answer does not keep the others from being looked at.
 */
export async function lookAtEach<Candidate>(
  { log }: Context,
  { id }: EvmNetwork,
  candidates: readonly Candidate[],
  look: (candidate: Candidate) => Promise<void>,
): Promise<void> {
  for (const candidate of candidates)
    await look(candidate).catch((error: unknown) => {
      if (!isNodeError(error)) throw error
      log.debug(
        { network: id, err: error },
        'the nodes did not answer about a payment; the next run looks at it again',
      )
    })
}
