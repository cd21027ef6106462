import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { reachedBy } from '../agree.ts'
import * as rows from '../rows.ts'
import { blockCall, blockIn, type Chain } from './chain.ts'
import { searchAgain } from './search.ts'
import { fillGaps, type Listener, type Reached, readAgain, readContents, writeSettled } from './take.ts'
import { turnBack } from './turn-back.ts'
import { judge, noteLies, paceOf, readHeaders } from './witnesses.ts'

/** How long blocks are kept below the finalized one, for queries about the recent past. */
const keptSeconds = 10_000
/** How many of the newest blocks are used to measure the time between blocks. */
const blocksMeasured = 3_000
/** Finality is not read again sooner for the same end of the stored chain. */
const sameEndMs = 1_000

/** How often a look repeats reads that are not needed every time. */
export type Paces = {
  /** Finality, while something waits for it. */
  readonly finalityMs: number
  /** Finality and account nonces, while nothing waits for them. */
  readonly quietMs: number
}

type Advanced = Paces & { readonly follower: rows.Follower; readonly tip: rows.StoredBlock }

/**
 * Moves `safe` and `finalized` up to the blocks that were read and witnessed, or as far as one transaction should go. A
 * block becomes safe only after these checks:
 *
 *   enough providers have searched it and found the same, at a time when it was safe or deep
 *   it was read again, if too few providers had reported it, or if something was found in it and only one had
 *   enough providers still have it in its place, if something was found in it
 *
 * So anything that the first read missed is found before a decision depends on it. Returns whether there is more to do
 * at once.
 */
export async function advance(
  ctx: Context,
  chain: Chain,
  { follower: before, tip, ...paces }: Advanced,
  listener: Listener,
): Promise<boolean> {
  const { caip2: network, witnessesMin } = chain.network
  const from = { safe: before.safeNumber, finalized: before.finalizedNumber }
  const end = tip.number
  const seen = await lookAtFinality(ctx, chain, end, paces, listener)
  const finalizedSeen = Math.max(before.finalizedNumber, Math.min(seen?.finalized ?? 0, end))
  const safeSeen = Math.max(before.safeNumber, finalizedSeen, Math.min(seen?.safe ?? 0, end))
  const pace = paceOf(chain)
  const lacking = await listUnwitnessed(ctx.db, network, {
    above: before.safeNumber,
    upTo: safeSeen,
    witnessesMin,
    limit: pace,
  })
  const [gap] = lacking.length === 0 ? [] : await readAgain(ctx, chain, before, lacking, listener)
  const readUpTo = lacking.length === pace ? (lacking.at(-1)?.number ?? safeSeen) : safeSeen
  const witnessedUpTo = gap === undefined ? readUpTo : gap - 1
  const settled = await settle(ctx, chain, { follower: before, tip }, safeSeen, listener)
  const reached = Math.min(safeSeen, witnessedUpTo, settled)
  const confirmed = await confirmFound(ctx, chain, { above: before.safeNumber, upTo: reached })
  if (confirmed.replaced !== null) return await turnBack(ctx, chain, before, listener, confirmed.replaced)
  const safe = Math.max(before.safeNumber, Math.min(reached, confirmed.upTo))
  const finalized = Math.max(before.finalizedNumber, Math.min(finalizedSeen, safe))
  if (seen) seen.isUnfinished = false
  if (!seen || (safe === from.safe && finalized === from.finalized)) return false
  const to = await listener.reach(from, { safe, finalized })
  const isLast = to.safe === safe && to.finalized === finalized
  await writeReached(ctx, chain, { from, to, isLast }, listener)
  seen.isUnfinished = !isLast || (gap === undefined && safe < safeSeen)
  return seen.isUnfinished
}

async function writeReached(
  ctx: Context,
  { network: { caip2: network } }: Chain,
  { from, to, isLast }: { readonly from: Reached; readonly to: Reached; readonly isLast: boolean },
  listener: Listener,
): Promise<void> {
  const isChange = await ctx.db.transaction(async (tx) => {
    await rows.lockFollower(tx, network)
    await writeFinality(tx, network, to.safe, to.finalized)
    const isChanged = await listener.onFinality(tx, from, to, isLast)
    if (isChanged) crashPoint(ctx, 'finality-before-commit')
    return isChanged
  })
  if (isChange) crashPoint(ctx, 'finality-after-commit')
  await deleteOldBlocks(ctx.db, network, to.finalized)
  await measureBlockTime(ctx.db, network)
  listener.onCommit()
}

type FinalityRead = Reached & {
  readonly end: number
  readonly at: number
  /** Whether the stored finality has not caught up with it yet. */
  isUnfinished: boolean
}

/** The finality of each chain as this process last read it. */
const finalityReads = new WeakMap<Chain, FinalityRead>()

/** Whether the stored finality has not caught up with the last read. */
export function isAdvancing(chain: Chain): boolean {
  return finalityReads.get(chain)?.isUnfinished === true
}

/** Null if it was read a moment ago and everything about that is done, or if nothing waits for it. */
async function lookAtFinality(
  ctx: Context,
  chain: Chain,
  end: number,
  { finalityMs, quietMs }: Paces,
  listener: Listener,
): Promise<FinalityRead | null> {
  const last = finalityReads.get(chain)
  const at = ctx.now().getTime()
  const restedMs = last ? at - last.at : Number.POSITIVE_INFINITY
  const isRecent = restedMs < (last?.end === end ? Math.max(sameEndMs, finalityMs) : finalityMs)
  const isDue = !isRecent && (restedMs >= quietMs || (await listener.awaitsFinality()))
  if (!isDue) return last?.isUnfinished && last.end <= end ? last : null
  const read = { ...(await readFinality(chain)), end, at, isUnfinished: false }
  finalityReads.set(chain, read)
  return read
}

/**
 * Searches again the blocks that are safe and were searched only while they were new. Returns the last block up to
 * which enough providers have found the same, and everything they found is stored.
 */
async function settle(
  ctx: Context,
  chain: Chain,
  { follower, tip }: { readonly follower: rows.Follower; readonly tip: rows.StoredBlock },
  upTo: number,
  listener: Listener,
): Promise<number> {
  const { caip2: network, witnessesMin } = chain.network
  const above = Math.min(follower.settledNumber, tip.number)
  if (upTo <= above) return above
  const concerns = await listener.concerns(ctx.db)
  const { telling, searchedUpTo } = await searchAgain(chain, { above, upTo }, concerns)
  if (telling.length < witnessesMin) return above
  const stored = await rows.listBlocksBetween(ctx.db, network, { above, upTo: searchedUpTo })
  const contents = await readContents(ctx, chain, telling, { tip, stored, concerns })
  const isFilled = await fillGaps(ctx, chain, { follower, tip, stored }, contents, listener)
  if (!isFilled || contents.consistent.length < witnessesMin) return above
  const isSettled = await ctx.db.transaction(async (tx) => {
    await rows.lockFollower(tx, network)
    if ((await rows.readTip(tx, network))?.hash !== tip.hash) return false
    await writeSettled(tx, network, searchedUpTo)
    return true
  })
  return isSettled ? searchedUpTo : above
}

/**
 * Checks again whether the blocks in which something was found are still part of the chain. Since they were read, a
 * reorganisation may have replaced them.
 */
async function confirmFound(
  ctx: Context,
  chain: Chain,
  range: { readonly above: number; readonly upTo: number },
): Promise<{ readonly upTo: number; readonly replaced: number | null }> {
  const { caip2: network, witnessesMin } = chain.network
  if (range.upTo <= range.above) return { upTo: range.upTo, replaced: null }
  const stored = await listFoundBetween(ctx.db, network, range, confirmedAtOnce)
  const read = await readHeaders(
    chain,
    stored.map(({ number }) => number),
  )
  for (const [i, block] of stored.entries()) {
    const verdict = judge(read[i] ?? [], witnessesMin)
    await noteLies(ctx, chain, verdict.lies)
    const isTold = verdict.kind === 'believed' && verdict.toldBy.length >= witnessesMin
    if (isTold && verdict.block.hash !== block.hash) return { upTo: block.number - 1, replaced: block.number }
    if (!isTold) return { upTo: block.number - 1, replaced: null }
  }
  const last = stored.length === confirmedAtOnce ? stored.at(-1)?.number : null
  return { upTo: last ?? range.upTo, replaced: null }
}

const confirmedAtOnce = 20

async function listFoundBetween(
  db: Database,
  network: string,
  { above, upTo }: { readonly above: number; readonly upTo: number },
  limit: number,
): Promise<rows.StoredBlock[]> {
  const found = await db.query<rows.BlockRow>(
    `select * from blocks where network = $1 and number > $2 and number <= $3 and is_found
     order by number limit $4`,
    [network, above, upTo, limit],
  )
  return found.map(rows.toBlock)
}

/**
 * The blocks that must be read again, oldest first: those reported by fewer than `witnessesMin` providers and, up to
 * the block that is about to become safe, those with a finding that only one provider reported.
 */
async function listUnwitnessed(
  db: Database,
  network: string,
  wanted: { above: number; upTo: number; witnessesMin: number; limit: number },
): Promise<rows.StoredBlock[]> {
  const found = await db.query<rows.BlockRow>(
    `select * from blocks where network = $1 and number > $2
       and cardinality(told_by) < case when is_found and number <= $3 then greatest(2, $4) else $4 end
     order by number limit $5`,
    [network, wanted.above, wanted.upTo, wanted.witnessesMin, wanted.limit],
  )
  return found.map(rows.toBlock)
}

/**
 * Deletes old blocks. Keeps the newest one at or below this number, and those less than `keptSeconds` older than it.
 */
async function deleteOldBlocks(db: Database, network: string, number: number): Promise<void> {
  await db.query(
    `delete from blocks where network = $1 and number < $2 and block_time < (select b.block_time from blocks b
       where b.network = $1 and b.number <= $2 order by b.number desc limit 1) - make_interval(secs => $3)`,
    [network, number, keptSeconds],
  )
}

/**
 * Stores the measured time between blocks. It only decides when and how far to look; no proof depends on it. Less than
 * a minute of blocks is not enough to measure, because block times are whole seconds.
 */
export async function measureBlockTime(db: Database, network: string): Promise<void> {
  await db.query(
    `update followers f set block_time_ms = m.ms from (
       select extract(epoch from max(block_time) - min(block_time)) * 1000 / (max(number) - min(number)) as ms
       from blocks where network = $1 and number > (select max(number) - $2 from blocks where network = $1)
       having max(block_time) - min(block_time) >= interval '1 minute'
     ) m where f.network = $1 and f.block_time_ms is distinct from round(m.ms)`,
    [network, blocksMeasured],
  )
}

async function writeFinality(
  tx: Transaction,
  network: string,
  safe: number,
  finalized: number,
): Promise<void> {
  await tx.query('update followers set safe_number = $2, finalized_number = $3 where network = $1', [
    network,
    safe,
    finalized,
  ])
}

/**
 * The safe and the finalized block, as far as enough providers report them. A node that has no such block yet answers
 * null, which counts as block 0.
 */
export async function readFinality(chain: Chain): Promise<{ safe: number; finalized: number }> {
  // Each answer must show that its provider is on our chain: a provider on another chain may report a higher block.
  const told = await chain.rpc.askAll([blockCall('safe'), blockCall('finalized')], undefined, true)
  const reached = (place: number) => {
    const numbers = told.map(({ outcomes }) => blockIn(outcomes[place])?.number ?? 0)
    return reachedBy(numbers, chain.network.witnessesMin) ?? 0
  }
  return { safe: reached(0), finalized: reached(1) }
}
