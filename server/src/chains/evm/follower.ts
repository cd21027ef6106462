import { setTimeout as wait } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Database, Transaction } from '../../database/db.ts'
import type { Hex } from '../hex.ts'
import * as rows from '../rows.ts'
import { type Block, type Chain, readHead, readHeadNumber } from './chain.ts'
import { noteAgreement, noteDispute, noteLies } from './disputes.ts'
import { readAgreedNonces, readFinality } from './finality.ts'
import type { AccountNonce, Listener, Reached } from './listener.ts'
import { turnBack } from './turn-back.ts'
import { type BlockVerdict, judge, readAccounts, type WantedBlock } from './witnesses.ts'

/**
 * Follows one chain block by block. Blocks that were read are kept as a chain of hashes: the next block must name the
 * last one as its parent. If it does not, the chain was reorganised: the follower steps back to the last common block,
 * reports what was orphaned, and reads on from there. After downtime, the missing blocks are read like any others, in
 * order.
 *
 * Every block is read from all providers at once. One that enough of them report alike is witnessed. If the others are
 * silent, or lag for longer than a moment, a block that fewer have reported is taken too, but what is in it may complete
 * little (see credits), and it becomes `safe` only once it is witnessed. While providers contradict each other, nothing
 * is taken.
 *
 * Each block is one transaction: its row, and whatever the listener derives from its logs. So after a crash the block
 * is read again. One process leads; if two should ever believe they do, the row lock makes them take turns, and the
 * second finds its block already there.
 */
const leaseSeconds = 10
/** Blocks per request when catching up: how many at most, how many at first, and with how many logs together. */
const blocksPerRead = 20
const blocksPerFirstRead = 5
const logsPerRead = 10_000
/** How often per block time we poll for a block that is due, and how many times at most. */
const dueLooksPerBlock = 20
const dueLooksMax = 6
/** How long blocks are kept below the finalized one, for queries about the recent past. */
const keptSeconds = 10_000
/** How many of the newest blocks say how fast they come. */
const blocksMeasured = 3_000
/** How much later than a block is due we wait for providers that do not have it yet before we go on without them. */
const lagSeconds = 3
/** Where too few providers report what is finalized, reading starts this far below the head: over half an hour. */
const firstSecondsMax = 2_000
/** While nothing is in flight, nonces and finality are read only every so often. */
const idleSeconds = 16

/** Looks at the chain at once. True if there may be more to read. Null if another process leads. */
export async function followOnce(
  ctx: Context,
  chain: Chain,
  holder: string,
  listener: Listener,
): Promise<boolean | null> {
  const follower = await rows.leaseFollower(ctx.db, chain.network.caip2, holder, leaseSeconds)
  return follower ? await follow(ctx, chain, follower, listener) : null
}

/** Looks at the chain when the next block is due. Returns like followOnce. */
export async function followNext(
  ctx: Context,
  chain: Chain,
  holder: string,
  listener: Listener,
): Promise<boolean | null> {
  const follower = await rows.leaseFollower(ctx.db, chain.network.caip2, holder, leaseSeconds)
  if (!follower) return null
  const isDue = finalityReads.get(chain)?.isUnfinished || (await waitForNext(chain, follower))
  return isDue ? await follow(ctx, chain, follower, listener) : false
}

async function follow(
  ctx: Context,
  chain: Chain,
  follower: rows.Follower,
  listener: Listener,
): Promise<boolean> {
  const network = chain.network.caip2
  // A provider that hides new blocks hides them only when it is asked first.
  const head = await readHead(chain, Math.floor(ctx.now().getTime() / chain.network.blockTimeMs))
  const tip = await rows.readTip(ctx.db, network)
  if (!head) return false
  if (tip && head.number <= tip.number) {
    const [stored] = await rows.readStoredBlocks(ctx.db, network, head.number, 1)
    // A node that is merely behind has the same block at its height as we do.
    if (stored?.number === head.number && stored.hash !== head.hash)
      return await turnBack(ctx, chain, follower, listener)
    return await advance(ctx, chain, follower, tip.number, listener)
  }

  const from = tip ? tip.number + 1 : await chooseFirst(chain, head.number)
  if (from === null) return false
  const wanted = Array.from({ length: Math.min(paceOf(chain), head.number - from + 1) }, (_, i) => ({
    number: from + i,
    hash: from + i === head.number ? head.hash : null,
  }))
  const { witnessesMin, blockTimeMs } = chain.network
  const read = await readVerdicts(ctx, chain, wanted, true)
  const isOverdue = (follower.headAgeSeconds ?? lagSeconds) > blockTimeMs / 1_000 + lagSeconds
  const { linked, rest } = takeLinked(read, tip?.hash ?? null, witnessesMin, isOverdue)
  if (linked.length === 0 && rest?.kind === 'believed' && tip && rest.block.parentHash !== tip.hash)
    return await turnBack(ctx, chain, follower, listener)
  if (rest?.kind === 'disputed' || rest?.kind === 'forked') await noteDispute(ctx, chain, follower, rest)
  const end = linked.at(-1)
  if (!end) return false
  // Only at the head: many nodes keep no older state, and while catching up, older nonces would be outdated at once.
  const isHead = end.block.number === head.number
  // After a reorganisation, nonces may have gone back.
  const isComplete = !isSamePeriod(follower.headTime, end.block.time) || from <= follower.headNumber
  const accounts = isHead ? await listener.accounts(isComplete) : []
  const nonces = await readAgreedNonces(chain, accounts, end.block.number)
  for (const told of linked)
    if (!(await takeBlock(ctx, chain, told, listener, isHead && told === end ? nonces : []))) return true
  await noteAgreement(ctx, chain, follower)
  const isMore = await advance(ctx, chain, follower, end.block.number, listener)
  return isMore || end.block.number < head.number
}

/**
 * Where reading starts the first time. Nothing before the head of then can be ours, but the first block is one that is
 * never given up (see turn-back), so it must be one that the chain no longer replaces. Null if the node that reported the
 * head is behind what is finalized: it may still be syncing, and everything since then would be read first.
 */
async function chooseFirst(chain: Chain, head: number): Promise<number | null> {
  const { finalized } = await readFinality(chain)
  const blocksMax = Math.ceil((firstSecondsMax * 1_000) / chain.network.blockTimeMs)
  return head < finalized ? null : Math.max(head - blocksMax, finalized)
}

/** Whether two times are in the same period between looks at what is not in flight. */
function isSamePeriod(one: Date | null, other: Date): boolean {
  const periodOf = (time: Date) => Math.floor(time.getTime() / 1_000 / idleSeconds)
  return one !== null && periodOf(one) === periodOf(other)
}

/** Reads blocks from every provider, decides what to believe of each, and puts those aside that were caught lying. */
async function readVerdicts(
  ctx: Context,
  chain: Chain,
  wanted: readonly WantedBlock[],
  isHasty: boolean,
): Promise<BlockVerdict[]> {
  // If no provider can answer in time, the next read asks for less.
  paces.set(chain, Math.ceil(wanted.length / 2))
  const accounts = await readAccounts(chain, wanted, isHasty)
  const verdicts = accounts.map((one) => judge(one, chain.network.witnessesMin))
  const logs = verdicts.reduce((sum, one) => sum + (one.kind === 'believed' ? one.logs.length : 0), 0)
  const logsPerBlock = Math.max(1, logs / Math.max(1, verdicts.length))
  paces.set(chain, Math.min(blocksPerRead, Math.max(1, Math.floor(logsPerRead / logsPerBlock))))
  const lies = verdicts.flatMap((verdict) => verdict.lies)
  await noteLies(ctx, chain, lies)
  return verdicts
}

/** How many blocks of each chain are read at a time, in this process, after how full the last ones were. */
const paces = new WeakMap<Chain, number>()

function paceOf(chain: Chain): number {
  return paces.get(chain) ?? blocksPerFirstRead
}

/**
 * Blocks come at regular times. If the next one is due before the next look, we wait for it here and see it at once,
 * because payers are waiting for it. An overdue block is left to the usual looks. False if it is not due yet.
 */
async function waitForNext(chain: Chain, { headNumber, headAgeSeconds }: rows.Follower): Promise<boolean> {
  const { blockTimeMs } = chain.network
  // The last block was recorded a little after it came.
  const dueMs = 0.9 * blockTimeMs - (headAgeSeconds ?? blockTimeMs) * 1_000
  if (dueMs > blockTimeMs / 8) return false
  if (dueMs < -blockTimeMs / 8) return true
  await wait(Math.max(0, dueMs))
  for (let i = 0; i < dueLooksMax && (await readHeadNumber(chain, i)) <= headNumber; i++)
    await wait(blockTimeMs / dueLooksPerBlock)
  return true
}

type Believed = Extract<BlockVerdict, { kind: 'believed' }>

/**
 * The blocks up to the first one that is not believed, does not follow its predecessor, or was reported by too few while
 * others may still report it; and that one.
 */
function takeLinked(
  read: readonly BlockVerdict[],
  tip: Hex | null,
  witnessesMin: number,
  isOverdue: boolean,
): { linked: Believed[]; rest: BlockVerdict | undefined } {
  const linked: Believed[] = []
  let parent = tip
  for (const verdict of read) {
    const isTold =
      verdict.kind === 'believed' &&
      (verdict.toldBy.length >= witnessesMin || !verdict.isAwaited || isOverdue) &&
      (parent === null || verdict.block.parentHash === parent)
    if (!isTold) break
    linked.push(verdict)
    parent = verdict.block.hash
  }
  return { linked, rest: read[linked.length] }
}

async function takeBlock(
  ctx: Context,
  { network: { caip2: network, witnessesMin } }: Chain,
  { block, logs, toldBy, isDoubted }: Believed,
  listener: Listener,
  nonces: readonly AccountNonce[],
): Promise<boolean> {
  const isTaken = await ctx.db.transaction(async (tx) => {
    await rows.lockFollower(tx, network)
    const tip = await rows.readTip(tx, network)
    // Another process was faster.
    if (tip && tip.hash !== block.parentHash) return false
    await insertBlock(tx, network, block, toldBy)
    const isWitnessed = toldBy.length >= witnessesMin
    await listener.onBlock(tx, block, logs, { isWitnessed, isDoubted, isAgain: false })
    if (nonces.length > 0) await listener.onNonces(tx, nonces)
    if (logs.length > 0) crashPoint(ctx, 'block-before-commit')
    return true
  })
  if (isTaken && logs.length > 0) crashPoint(ctx, 'block-after-commit')
  if (isTaken) listener.onCommit()
  return isTaken
}

/**
 * Moves `safe` and `finalized` up to what was read and witnessed, or as far as one transaction should go. Blocks that too
 * few providers reported are read again first, and so are those that only one reported before they become safe. So
 * anything that the first reading missed is found before a decision depends on it.
 */
async function advance(
  ctx: Context,
  chain: Chain,
  before: rows.Follower,
  end: number,
  listener: Listener,
): Promise<boolean> {
  const { caip2: network, witnessesMin } = chain.network
  const from = { safe: before.safeNumber, finalized: before.finalizedNumber }
  const seen = await lookAtFinality(ctx, chain, end, listener)
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
  const safe = Math.max(before.safeNumber, Math.min(safeSeen, witnessedUpTo))
  const finalized = Math.max(before.finalizedNumber, Math.min(finalizedSeen, safe))
  if (seen) seen.isUnfinished = false
  if (!seen || (safe === from.safe && finalized === from.finalized)) return false
  const to = await listener.reach(from, { safe, finalized })
  const isLast = to.safe === safe && to.finalized === finalized
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
  seen.isUnfinished = !isLast || (gap === undefined && safe < safeSeen)
  return seen.isUnfinished
}

type FinalityRead = Reached & {
  readonly end: number
  readonly at: number
  /** Whether a step of the way to it is still to be gone. */
  isUnfinished: boolean
}

/** Each chain's finality as it was last read, in this process: once per block is enough. */
const finalityReads = new WeakMap<Chain, FinalityRead>()

/** Null if it was read a moment ago and there is nothing left to do about that, or if nothing waits for it. */
async function lookAtFinality(
  ctx: Context,
  chain: Chain,
  end: number,
  listener: Listener,
): Promise<FinalityRead | null> {
  const last = finalityReads.get(chain)
  const at = ctx.now().getTime()
  const isRecent = last?.end === end && at - last.at < chain.network.blockTimeMs
  const isIdleOver = !last || at - last.at >= idleSeconds * 1_000
  const isDue = !isRecent && (isIdleOver || (await listener.awaitsFinality()))
  if (!isDue) return last?.isUnfinished && last.end <= end ? last : null
  const read = { ...(await readFinality(chain)), end, at, isUnfinished: false }
  finalityReads.set(chain, read)
  return read
}

/** Reads stored blocks again from every provider. Returns the numbers of those that are still not witnessed. */
async function readAgain(
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
    // Another block in its place is a reorganisation, which the next look at the head finds.
    if (verdict?.kind !== 'believed' || verdict.block.hash !== stored.hash) {
      lacking.push(stored.number)
      continue
    }
    const isWitnessed = verdict.toldBy.length >= witnessesMin
    if (!isWitnessed) lacking.push(stored.number)
    await ctx.db.transaction(async (tx) => {
      await rows.lockFollower(tx, network)
      // Another process may have turned back: reading a block again must not bring it back into the chain.
      if (!(await noteToldBy(tx, network, stored.hash, verdict.toldBy))) return
      const { isDoubted } = verdict
      await listener.onBlock(tx, stored, verdict.logs, { isWitnessed, isDoubted, isAgain: true })
    })
  }
  listener.onCommit()
  return lacking
}

/** Reads blocks of the chain once more, from every provider, to find what was missed in them. */
export async function readBlocksAgain(
  ctx: Context,
  chain: Chain,
  hashes: readonly Hex[],
  listener: Listener,
): Promise<void> {
  const network = chain.network.caip2
  const follower = await rows.readFollower(ctx.db, network)
  const blocks = await readBlocksByHash(ctx.db, network, hashes)
  if (follower && blocks.length > 0) await readAgain(ctx, chain, follower, blocks, listener)
}

/** Those of these blocks that are part of the chain and were not pruned, oldest first. */
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

/**
 * Blocks that must be read again, oldest first: those that fewer than `witnessesMin` providers told, and up to the
 * block that is about to become safe also those that only one told.
 */
async function listUnwitnessed(
  db: Database,
  network: string,
  wanted: { above: number; upTo: number; witnessesMin: number; limit: number },
): Promise<rows.StoredBlock[]> {
  const found = await db.query<rows.BlockRow>(
    `select * from blocks where network = $1 and number > $2
       and cardinality(told_by) < case when number <= $3 then greatest(2, $4) else $4 end
     order by number limit $5`,
    [network, wanted.above, wanted.upTo, wanted.witnessesMin, wanted.limit],
  )
  return found.map(rows.toBlock)
}

/** Records who reported a block at a later reading. False if it is no longer part of the chain. */
async function noteToldBy(
  tx: Transaction,
  network: string,
  hash: Hex,
  toldBy: readonly string[],
): Promise<boolean> {
  const told = await tx.query<{ number: string }>(
    `with told as (
       update blocks set told_by = $3 where network = $1 and hash = $2 returning number
     ), head as (
       update followers set witnesses = cardinality($3::text[])
       where network = $1 and head_number = (select number from told)
     )
     select number from told`,
    [network, hash, toldBy],
  )
  return told.length > 0
}

async function insertBlock(
  tx: Transaction,
  network: string,
  block: Block,
  toldBy: readonly string[],
): Promise<void> {
  await tx.query(
    `with made as (
       insert into blocks (network, number, hash, parent_hash, block_time, told_by) values ($1, $2, $3, $4, $5, $7)
     )
     update followers set head_number = $2, head_time = $5, base_fee = $6, head_seen_at = clock(),
       witnesses = cardinality($7::text[]) where network = $1`,
    [network, block.number, block.hash, block.parentHash, block.time, block.baseFee.toString(), toldBy],
  )
}

/** Deletes blocks that are much older than the newest one at or below this number, which stays. */
async function deleteOldBlocks(db: Database, network: string, number: number): Promise<void> {
  await db.query(
    `delete from blocks where network = $1 and number < $2 and block_time < (select b.block_time from blocks b
       where b.network = $1 and b.number <= $2 order by b.number desc limit 1) - make_interval(secs => $3)`,
    [network, number, keptSeconds],
  )
}

/**
 * Keeps how fast blocks really come. That only says when to look and how far: no proof is shortened by it. Less than a
 * minute of blocks says little, because their times have no fractions of a second.
 */
async function measureBlockTime(db: Database, network: string): Promise<void> {
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
