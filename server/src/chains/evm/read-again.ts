import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import type { Hex } from '../hex.ts'
import * as rows from '../rows.ts'
import type { Chain } from './chain.ts'
import { noteDispute } from './disputes.ts'
import type { Listener } from './listener.ts'
import { readVerdicts } from './read-blocks.ts'
import { takeMissed } from './take.ts'

/** A block in which a provider reports something. */
export type BlockPlace = { readonly number: number; readonly hash: Hex }

/** Reads stored blocks again from every provider. Returns the numbers of those that are still not witnessed. */
export async function readAgain(
  ctx: Context,
  chain: Chain,
  follower: rows.Follower,
  blocks: readonly rows.StoredBlock[],
  listener: Listener,
): Promise<number[]> {
  const { caip2: network, witnessesMin } = chain.network
  const read = await readVerdicts(ctx, chain, blocks, false)
  const lacking: number[] = []
  for (const [i, stored] of blocks.entries()) {
    const verdict = read[i]
    if (verdict?.kind === 'disputed') await noteDispute(ctx, chain, follower, verdict)
    // Another block in its place means a reorganisation, which the next look at the head finds.
    if (verdict?.kind !== 'believed' || verdict.block.hash !== stored.hash) {
      lacking.push(stored.number)
      continue
    }
    const isWitnessed = verdict.toldBy.length >= witnessesMin
    if (!isWitnessed) lacking.push(stored.number)
    await ctx.db.transaction(async (tx) => {
      await rows.lockFollower(tx, network)
      // Another process may have turned back: reading a block again must not bring it back into the chain.
      if (!(await noteToldBy(tx, network, stored.hash, verdict))) return
      const { isDoubted } = verdict
      await listener.onBlock(tx, stored, verdict.logs, { isWitnessed, isDoubted, isAgain: true })
    })
  }
  listener.onCommit()
  return lacking
}

/**
 * Reads blocks below the tip that are not stored, although a provider reports a finding in them. Returns the numbers of
 * those that could not be stored.
 */
async function readMissed(
  ctx: Context,
  chain: Chain,
  { follower, tip }: { readonly follower: rows.Follower; readonly tip: rows.StoredBlock },
  places: readonly BlockPlace[],
  listener: Listener,
): Promise<number[]> {
  const read = await readVerdicts(ctx, chain, places, false)
  const lacking: number[] = []
  for (const [i, { number }] of places.entries()) {
    const verdict = read[i]
    if (verdict?.kind === 'disputed' || verdict?.kind === 'forked')
      await noteDispute(ctx, chain, follower, verdict)
    const isTaken = verdict?.kind === 'believed' && (await takeMissed(ctx, chain, verdict, tip, listener))
    if (!isTaken) lacking.push(number)
  }
  return lacking
}

/** At most this many are read at once, because a provider can name any number. */
const placesMax = 8

/** Reads these blocks again, from every provider, to find what was missed in them. */
export async function readBlocksAgain(
  ctx: Context,
  chain: Chain,
  places: readonly BlockPlace[],
  listener: Listener,
): Promise<void> {
  const network = chain.network.caip2
  const [follower, tip] = await Promise.all([
    rows.readFollower(ctx.db, network),
    rows.readTip(ctx.db, network),
  ])
  if (!follower || !tip) return
  const hashes = places.map(({ hash }) => hash)
  const stored = await readBlocksByHash(ctx.db, network, hashes)
  if (stored.length > 0) await readAgain(ctx, chain, follower, stored, listener)
  const isStored = ({ number }: BlockPlace) => stored.some((block) => block.number === number)
  const missed = places.filter((place) => place.number < tip.number && !isStored(place)).slice(0, placesMax)
  await readMissed(ctx, chain, { follower, tip }, missed, listener)
}

/** Those of these blocks that are stored and part of the chain, oldest first. */
async function readBlocksByHash(
  db: Database,
  network: string,
  hashes: readonly Hex[],
): Promise<rows.StoredBlock[]> {
  const found = await db.query<rows.BlockRow>(
    'select * from blocks where network = $1 and hash = any($2) order by number',
    [network, hashes],
  )
  return found.map(rows.toBlock)
}

/** Records who reported a block at a later reading. False if it is no longer part of the chain. */
async function noteToldBy(
  tx: Transaction,
  network: string,
  hash: Hex,
  { toldBy, logs }: { readonly toldBy: readonly string[]; readonly logs: readonly unknown[] },
): Promise<boolean> {
  const told = await tx.query<{ number: string }>(
    `with told as (
       update blocks set told_by = $3, is_found = is_found or $4 where network = $1 and hash = $2 returning number
     ), head as (
       update followers set witnesses = cardinality($3::text[])
       where network = $1 and head_number = (select number from told)
     )
     select number from told`,
    [network, hash, toldBy, logs.length > 0],
  )
  return told.length > 0
}
