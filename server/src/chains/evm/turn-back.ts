import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Database, Transaction } from '../../database/db.ts'
import type { Hex } from '../hex.ts'
import * as rows from '../rows.ts'
import type { Chain } from './chain.ts'
import type { Listener } from './take.ts'
import { judge, noteDispute, noteLies, readHeaders } from './witnesses.ts'

/** Blocks compared at a time. */
const stepBack = 32

/**
 * Steps back to the last stored block that the chain still has. A safe block is given up only if enough providers have
 * another in its place. Above that, one provider is enough if no other contradicts it. The lowest stored block is never
 * given up: reading continues from it, so no block is skipped. `from` is the number of a stored block that was found
 * replaced, if that is not the newest one.
 */
export async function turnBack(
  ctx: Context,
  chain: Chain,
  follower: rows.Follower,
  listener: Listener,
  from = Number.MAX_SAFE_INTEGER,
): Promise<boolean> {
  const { caip2: network, witnessesMin } = chain.network
  const tip = await rows.readTip(ctx.db, network)
  let upTo = from
  let isReplaced = false
  for (;;) {
    const stored = await rows.readStoredBlocks(ctx.db, network, upTo, stepBack)
    const lowest = stored.at(-1)
    if (!tip || !lowest) return false
    const read = await readHeaders(
      chain,
      stored.map(({ number }) => number),
    )
    for (const [i, block] of stored.entries()) {
      const verdict = judge(read[i] ?? [], witnessesMin)
      await noteLies(ctx, chain, verdict.lies)
      if (verdict.kind === 'forked') {
        await noteDispute(ctx, chain, follower, verdict)
        return false
      }
      // A node that does not have our blocks, and has no others in their place, is merely behind.
      if (verdict.kind !== 'believed') continue
      if (verdict.block.hash === block.hash)
        return isReplaced ? await giveUpAbove(ctx, chain, tip, block.number, listener) : false
      if (block.number <= follower.safeNumber && verdict.toldBy.length < witnessesMin) {
        const what = `block ${block.number}, which is safe but which one provider has replaced`
        await noteDispute(ctx, chain, follower, { kind: 'disputed', what })
        return false
      }
      isReplaced = true
    }
    if (stored.length < stepBack) {
      const what = `every block from ${lowest.number} on: this is not the chain that was read before`
      await noteDispute(ctx, chain, follower, { kind: 'disputed', what })
      return false
    }
    upTo = lowest.number - 1
  }
}

/**
 * Gives up the newest blocks if too few providers reported them and none has them any more: one provider had made them
 * up, or they were replaced. Nothing is given up while a provider has the last one, or if enough providers had reported
 * it.
 */
export async function giveUpUntold(
  ctx: Context,
  chain: Chain,
  tip: rows.StoredBlock,
  listener: Listener,
): Promise<boolean> {
  const { caip2: network, witnessesMin } = chain.network
  const [accounts = []] = await readHeaders(chain, [tip.number])
  if (accounts.length < witnessesMin || accounts.some(({ block }) => block !== null)) return false
  const number = await readNewestTold(ctx.db, network, witnessesMin)
  if (number === null || number >= tip.number) return false
  return await giveUpAbove(ctx, chain, tip, number, listener)
}

async function readNewestTold(db: Database, network: string, witnessesMin: number): Promise<number | null> {
  const [row] = await db.query<{ number: string }>(
    `select number from blocks where network = $1 and cardinality(told_by) >= $2 order by number desc limit 1`,
    [network, witnessesMin],
  )
  return row ? Number.parseInt(row.number, 10) : null
}

function noteReorganisation(
  { log, metrics }: Context,
  { network: { id } }: Chain,
  number: number,
  replaced: number,
): void {
  metrics.reorganisations.inc({ network: id })
  log.info(
    { network: id, block: number, replaced },
    'chain reorganised: the blocks above this one were replaced',
  )
}

async function giveUpAbove(
  ctx: Context,
  chain: Chain,
  tip: rows.StoredBlock,
  number: number,
  listener: Listener,
): Promise<boolean> {
  const network = chain.network.caip2
  const isTurned = await ctx.db.transaction(async (tx) => {
    await rows.lockFollower(tx, network)
    // Another process was faster.
    if ((await rows.readTip(tx, network))?.hash !== tip.hash) return false
    const orphaned = await deleteBlocksAbove(tx, network, number)
    await rows.unsettle(tx, network)
    if (orphaned.length > 0) await listener.onOrphaned(tx, orphaned, number)
    tx.afterCommit(() => noteReorganisation(ctx, chain, number, orphaned.length))
    crashPoint(ctx, 'orphan-before-commit')
    return true
  })
  if (isTurned) crashPoint(ctx, 'orphan-after-commit')
  listener.onCommit()
  return true
}

/** Removes the blocks above a number and returns their hashes, which are no longer part of the chain. */
async function deleteBlocksAbove(tx: Transaction, network: string, number: number): Promise<Hex[]> {
  const deleted = await tx.query<{ hash: Hex }>(
    'delete from blocks where network = $1 and number > $2 returning hash',
    [network, number],
  )
  return deleted.map(({ hash }) => hash)
}
