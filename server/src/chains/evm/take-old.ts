import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { lockFollower, readFollower } from '../rows.ts'
import type { BlockPlace, Chain } from './chain.ts'
import type { Listener } from './take.ts'
import { readVerdicts } from './witnesses.ts'

/**
 * Reads blocks that are older than the stored part of the chain, which is all that can be read again otherwise. They are
 * final, so they need no place in that chain: what they hold can't be taken back. As many providers as for a payment
 * must report them.
 */
export async function readOldBlocks(
  ctx: Context,
  chain: Chain,
  places: readonly BlockPlace[],
  listener: Listener,
): Promise<void> {
  const { caip2: network, witnessesMin } = chain.network
  const follower = await readFollower(ctx.db, network)
  const oldest = await readOldest(ctx.db, network)
  if (!follower || oldest === null) return
  const below = Math.min(oldest, follower.finalizedNumber)
  const old = places.filter(({ number }) => number < below)
  for (const verdict of await readVerdicts(ctx, chain, old, false)) {
    if (verdict.kind !== 'believed' || verdict.isDoubted || verdict.toldBy.length < witnessesMin) continue
    await ctx.db.transaction(async (tx) => {
      await lockFollower(tx, network)
      const reading = { isWitnessed: true, isDoubted: false, isAgain: false }
      await listener.onBlock(tx, verdict.block, verdict.logs, reading)
    })
    listener.onCommit()
  }
}

async function readOldest(db: Database, network: string): Promise<number | null> {
  const [row] = await db.query<{ number: string | null }>(
    'select min(number)::text as number from blocks where network = $1',
    [network],
  )
  return row?.number ? Number.parseInt(row.number, 10) : null
}
