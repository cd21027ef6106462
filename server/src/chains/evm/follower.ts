import type { Context } from '../../context.ts'
import type { Hex } from '../hex.ts'
import * as rows from '../rows.ts'
import { type AccountNonce, readAgreedNonces } from './accounts.ts'
import { advance, isAdvancing, measureBlockTime, type Paces, readFinality } from './advance.ts'
import { beginLook, cadence, type Demand, endLook, untilDue, watchOf } from './cadence.ts'
import { type BlockPlace, type Chain, readHead, type ToldBlock } from './chain.ts'
import { blocksPerLook, type Concerns, type Range, readRange } from './search.ts'
import { type Believed, fillGaps, type Listener, readAhead, readContents, takeBlock } from './take.ts'
import { giveUpUntold, turnBack } from './turn-back.ts'
import { noteAgreement, noteDispute, noteLies, readVerdicts } from './witnesses.ts'

/**
 * Follows one chain by ranges of blocks. Each poll, called a look, searches the blocks after the one that was read
 * last, up to the head, for logs that concern us. Blocks in which something is found are read in full and stored, and
 * so is the header of the range's last block. Stored blocks therefore have gaps. A gap has been searched and contains
 * nothing that concerns us. If the block that was read last is no longer part of the chain, the chain was reorganised:
 * the follower steps back to the last common block, reports the orphaned ones, and reads on from there. After downtime,
 * the missing ranges are read like any others, in order.
 *
 * Every question goes to all providers at once. A block is witnessed if enough of them report the same one, and a range
 * is if enough of them find the same in it. If the others are silent, or late for more than a moment, blocks from fewer
 * providers are stored too. Money in those may complete little (see credits), and they become `safe` only once they are
 * witnessed. While providers contradict each other, nothing is stored.
 *
 * Two rules keep a search from missing a payment:
 *
 *   who is paid    A range is searched for every address that could have been paid in it. The addresses are read after the
 *                  head, and read again in the transaction that takes a block. If a wallet was registered in between, the
 *                  range is searched again. An address that is registered later can only be paid in a later block, because
 *                  nobody knew of it before. A nonce that was spent before its claim is not noticed here: the
 *                  proof that a payment is dead searches for that.
 *   late answers   A node may have a block before its logs. So a look also searches the last seconds again, up to which
 *                  the chain is `settled`, and nothing becomes safe, or is proven dead, above that.
 *
 * Each block is one transaction: its row, and whatever the listener derives from its logs. So after a crash the rest of
 * the range is read again. One process leads; if two should ever believe they do, the row lock makes them take turns,
 * and the second finds its block already there.
 */
const leaseSeconds = 10
/** How long after the next block is due we wait for providers that lack it, before we go on without them. */
const lagSeconds = 3
/** Below this age, a node may have a block but not its logs. */
const settleSecondsMax = 5
/** If too few providers report a finalized block, reading starts this far below the head: more than half an hour. */
const firstSeconds = 2_000
/**
 * The provider that is asked for the head changes after this time. Looks come at irregular intervals, so no provider
 * gets all of them.
 */
export const turnMs = 1_300
/** How often nonces and finality are read while nothing is in flight. */
const quietSeconds = 16

/** Looks at the chain at once. True if there may be more to read. Null if another process leads. */
export async function followOnce(
  ctx: Context,
  chain: Chain,
  holder: string,
  listener: Listener,
): Promise<boolean | null> {
  const follower = await rows.leaseFollower(ctx.db, chain.network.caip2, holder, leaseSeconds)
  return follower ? (await follow(ctx, chain, { follower, ...atOnce }, listener)) === true : null
}

/** Looks at the chain if it is time to. Returns the milliseconds until the next look. Null if another process leads. */
export async function followNext(
  ctx: Context,
  chain: Chain,
  holder: string,
  listener: Listener,
): Promise<number | null> {
  const follower = await rows.leaseFollower(ctx.db, chain.network.caip2, holder, leaseSeconds)
  if (!follower) return null
  const demand = await listener.readDemand()
  const watch = watchOf(chain)
  const now = ctx.now().getTime()
  const isUnfinished = isAdvancing(chain)
  const dueMs = isUnfinished ? 0 : untilDue(watch, follower, demand, now)
  if (dueMs > 0) return dueMs
  const begun = beginLook(watch, follower, demand, now)
  const look = {
    ...begun,
    ...pacesFor(chain, demand),
    sent: demand.sent,
    isPeek: begun.isPeek && !isUnfinished,
  }
  const outcome = await follow(ctx, chain, look, listener)
  endLook(watch, outcome, look.expected)
  const after = await rows.readFollower(ctx.db, chain.network.caip2)
  return untilDue(watch, after ?? follower, demand, ctx.now().getTime())
}

/** The task of one look. */
type Asked = Paces & {
  readonly follower: rows.Follower
  /** The block to read up to; null for the head. */
  readonly expected: number | null
  readonly isPeek: boolean
  /** The hashes of our transactions that are not mined. */
  readonly sent: readonly Hex[]
}

const localPaces: Paces = { finalityMs: 0, quietMs: quietSeconds * 1_000 }
const atOnce = { ...localPaces, expected: null, isPeek: false, sent: [] }

/** Local nodes cost nothing. */
function pacesFor({ network }: Chain, { isAwake }: Demand): Paces {
  if (network.isLocal) return localPaces
  return { finalityMs: cadence.finalityMs, quietMs: isAwake ? quietSeconds * 1_000 : cadence.rarelyMs }
}

/**
 * True if there may be more to read. `unmet` is the end of a range that could not be read yet, and 'unmined' means that
 * a peek found nothing.
 */
async function follow(
  ctx: Context,
  chain: Chain,
  { follower: before, expected, isPeek, sent, ...paces }: Asked,
  listener: Listener,
): Promise<boolean | 'unmined' | { readonly unmet: number }> {
  const network = chain.network.caip2
  const stored = await rows.readTip(ctx.db, network)
  const isExpected = stored !== null && expected !== null && expected > stored.number
  // A provider that hides new blocks can do so only while it is the one asked for the head.
  const turn = Math.floor(ctx.now().getTime() / turnMs)
  const { head: told, places } = isExpected ? unasked : await readHead(chain, turn, sent)
  if (isPeek && places.length === 0) return 'unmined'
  const head = isExpected ? { number: expected, hash: null } : told
  if (!head) return false
  const tip = stored ?? (told && (await begin(ctx, chain, before, told, listener)))
  const follower = stored ? before : await rows.readFollower(ctx.db, network)
  if (!tip || !follower) return false
  if (head.number <= tip.number) {
    const [same] = await rows.readStoredBlocks(ctx.db, network, head.number, 1)
    // A node that is merely behind has the same block at its height as we do.
    if (same?.number === head.number && same.hash !== head.hash)
      return await turnBack(ctx, chain, follower, listener)
    const isLost = head.number < tip.number && isOverdue(chain, follower)
    if (isLost && (await giveUpUntold(ctx, chain, tip, listener))) return true
    return await advance(ctx, chain, { follower, tip, ...paces }, listener)
  }
  const look = { follower, tip, head, headTime: told?.time ?? null, places, ...paces }
  const read = await readLook(ctx, chain, look, listener)
  if (read === 'turned') return await turnBack(ctx, chain, follower, listener)
  if (read === null) return { unmet: head.number }
  const end = await takeLook(ctx, chain, look, read, listener)
  if (end === null) return true
  if (read.isWhole) await noteAgreement(ctx, chain, follower)
  // Without it, every look at an idle chain must ask for the head first.
  if (follower.blockTimeMs === null) await measureBlockTime(ctx.db, network)
  const after = await rows.readFollower(ctx.db, network)
  const isMore = await advance(ctx, chain, { follower: after ?? follower, tip: end, ...paces }, listener)
  return isMore || end.number < head.number
}

/**
 * Reads the first block. Nothing before the present head can concern us. But the first block is never given up (see
 * turn-back), so it must be one that the chain no longer replaces: a final or an old one. Null if that can't be done
 * yet, or if the node that reported the head is behind the finalized block: it may still be syncing, and we would read
 * everything since then first.
 */
async function begin(
  ctx: Context,
  chain: Chain,
  follower: rows.Follower,
  head: ToldBlock,
  listener: Listener,
): Promise<rows.StoredBlock | null> {
  const { finalized } = await readFinality(chain)
  if (head.number < finalized) return null
  // The time between blocks is a guess, so the block's own time decides whether it is old enough.
  for (let back = Math.ceil((firstSeconds * 1_000) / chain.network.blockTimeMs); ; back *= 2) {
    const first = Math.max(head.number - back, finalized)
    const hash = first === head.number ? head.hash : null
    const [verdict] = await readVerdicts(ctx, chain, [{ number: first, hash }], true)
    if (verdict?.kind === 'disputed' || verdict?.kind === 'forked')
      await noteDispute(ctx, chain, follower, verdict)
    if (verdict?.kind !== 'believed' || !isToldEnough(chain, follower, verdict)) return null
    const { time } = verdict.block
    if (first > finalized && head.time.getTime() - time.getTime() < firstSeconds * 1_000) continue
    const concerns = await listener.concerns(ctx.db)
    const taking = {
      after: null,
      concerns,
      isFound: true,
      settledUpTo: time,
      isBehind: hash === null,
      nonces: [],
    }
    const isTaken = await takeBlock(ctx, chain, verdict, taking, listener)
    return isTaken ? { ...verdict.block, isFound: true, witnesses: verdict.toldBy.length } : null
  }
}

/** Whether two times are in the same period. Reads that nothing waits for happen once per period. */
function isSamePeriod(one: Date | null, other: Date, periodMs: number): boolean {
  const periodOf = (time: Date) => Math.floor(time.getTime() / periodMs)
  return one !== null && periodOf(one) === periodOf(other)
}

/** Whether enough providers have reported this, or waiting for the others is no use. */
function isToldEnough(
  chain: Chain,
  follower: rows.Follower,
  { toldBy, isAwaited }: { readonly toldBy: readonly string[]; readonly isAwaited: boolean },
): boolean {
  return toldBy.length >= chain.network.witnessesMin || !isAwaited || isOverdue(chain, follower)
}

/** Whether the next block should have come long ago. */
function isOverdue({ network }: Chain, { headAgeSeconds, blockTimeMs }: rows.Follower): boolean {
  // The measured time only makes us wait longer.
  const dueSeconds = Math.max(network.blockTimeMs, blockTimeMs ?? 0) / 1_000
  return (headAgeSeconds ?? lagSeconds) > dueSeconds + lagSeconds
}

const unasked = { head: null, places: [] }

type Look = Paces & {
  readonly follower: rows.Follower
  readonly tip: rows.StoredBlock
  /** The block to read up to, unless there are too many before it. */
  readonly head: { readonly number: number }
  /** Null if nobody was asked for the head. */
  readonly headTime: Date | null
  /** Blocks in which one provider has something that we sent. */
  readonly places: readonly BlockPlace[]
}

/** The result of reading the blocks above the tip, lowest first. */
type LookRead = {
  readonly concerns: Concerns
  readonly blocks: readonly (Believed & { readonly isFound: boolean })[]
  /** Whether the range was read to its end. */
  readonly isWhole: boolean
  /** Whether enough providers have found the same in it, and nothing below it is unsearched. */
  readonly isSettled: boolean
  /** Those after the end; none if it is below the head. */
  readonly nonces: readonly AccountNonce[]
}

/** Reads the range above the tip. `turned` means that the chain was reorganised. Null if nothing can be stored yet. */
async function readLook(
  ctx: Context,
  chain: Chain,
  look: Look,
  listener: Listener,
): Promise<LookRead | 'turned' | null> {
  const { follower, tip, head, headTime, places } = look
  const { caip2: network, witnessesMin } = chain.network
  const concerns = await listener.concerns(ctx.db)
  const range = chooseRange(look, blocksPerLook(chain, concerns))
  // Only at the head: many nodes keep no older state, and while we catch up, older nonces would be outdated at once.
  const isHead = range.end === head.number
  const above = places.filter(({ number }) => number > tip.number && number <= range.end)
  // Without waiting for the range, because a payer waits for a block that a provider has named.
  const [verdict, ahead, early] = await Promise.all([
    readRange(chain, range, concerns),
    readAhead(ctx, chain, above),
    isHead && above.length > 0 && headTime ? readNonces(chain, look, headTime, listener) : null,
  ])
  const { end, telling } = verdict
  await noteLies(ctx, chain, [...end.lies, ...(verdict.tip?.lies ?? [])])
  for (const one of [verdict.tip, end])
    if (one?.kind === 'forked' || one?.kind === 'disputed') {
      await noteDispute(ctx, chain, follower, one)
      return null
    }
  if (verdict.isTurned) return 'turned'
  const toldBy = telling.map(({ provider }) => provider)
  if (end.kind !== 'believed' || toldBy.length === 0) return null
  if (!isToldEnough(chain, follower, { toldBy, isAwaited: verdict.isAwaited })) return null

  const stored = await rows.listBlocksBetween(ctx.db, network, { above: range.above, upTo: tip.number })
  const [contents, nonces] = await Promise.all([
    readContents(ctx, chain, telling, { tip, stored, concerns, ahead }),
    early ?? (isHead ? readNonces(chain, look, end.block.time, listener) : []),
  ])
  const isFilled = await fillGaps(ctx, chain, { follower, tip, stored }, contents, listener)
  const { blocks, isCut } = await takeLinked(ctx, chain, look, contents.read)
  const { consistent } = contents
  const isWhole = contents.isWhole && !isCut && consistent.length > 0
  if (blocks.length === 0 && !isWhole) return null
  const isEndFound = blocks.at(-1)?.block.number === range.end
  const told = consistent.map(({ provider }) => provider)
  const last = { ...end, logs: [], toldBy: told, isDoubted: false, isFound: false }
  return {
    concerns,
    isWhole,
    nonces: isWhole ? nonces : [],
    blocks: isWhole && !isEndFound ? [...blocks, last] : blocks,
    isSettled:
      isWhole && isFilled && consistent.length >= witnessesMin && range.above <= follower.settledNumber,
  }
}

/**
 * Begins at the first block that is not settled, but at most half a look's blocks below the tip, and ends at the head
 * at most.
 */
function chooseRange({ follower, tip, head }: Look, blocks: number): Range {
  const above = Math.max(Math.min(follower.settledNumber, tip.number), tip.number - Math.floor(blocks / 2))
  return { tip, above, end: Math.min(head.number, above + blocks) }
}

/**
 * The blocks above the tip up to the first one that is not believed, does not follow its predecessor, or was reported by
 * too few while others may still report it.
 */
async function takeLinked(
  ctx: Context,
  chain: Chain,
  { follower, tip }: Look,
  read: Awaited<ReturnType<typeof readContents>>['read'],
): Promise<{ readonly blocks: (Believed & { readonly isFound: boolean })[]; readonly isCut: boolean }> {
  const blocks: (Believed & { readonly isFound: boolean })[] = []
  let parent: { readonly number: number; readonly hash: string } = tip
  for (const { number, verdict, isOurs } of read) {
    if (number <= tip.number) continue
    if (verdict.kind === 'forked' || verdict.kind === 'disputed')
      await noteDispute(ctx, chain, follower, verdict)
    if (verdict.kind !== 'believed' || !isToldEnough(chain, follower, verdict)) return { blocks, isCut: true }
    const { block } = verdict
    if (block.number === parent.number + 1 && block.parentHash !== parent.hash) return { blocks, isCut: true }
    blocks.push({ ...verdict, isFound: isOurs })
    parent = block
  }
  return { blocks, isCut: false }
}

/**
 * Stores what was read. Null if it must be read again, because another process was faster or a new address can be paid.
 */
async function takeLook(
  ctx: Context,
  chain: Chain,
  { tip, head }: Look,
  { blocks, concerns, isSettled, nonces }: LookRead,
  listener: Listener,
): Promise<rows.StoredBlock | null> {
  const end = blocks.at(-1)
  const settleMs = Math.min(settleSecondsMax, chain.network.negativeSeconds) * 1_000
  const isHead = end?.block.number === head.number
  let after = tip
  for (const block of blocks) {
    const isLast = block === end
    const taking = {
      after,
      concerns,
      isFound: block.isFound,
      settledUpTo: isLast && isSettled ? new Date(block.block.time.getTime() - settleMs) : null,
      isBehind: !isHead,
      nonces: isLast ? nonces : [],
    }
    if (!(await takeBlock(ctx, chain, block, taking, listener))) return null
    after = { ...block.block, isFound: block.isFound, witnesses: block.toldBy.length }
  }
  return after
}

async function readNonces(
  chain: Chain,
  { follower, tip, head, quietMs }: Look,
  headTime: Date,
  listener: Listener,
): Promise<AccountNonce[]> {
  // A reorganisation may have lowered nonces, so all of them are read again.
  const isComplete = !isSamePeriod(follower.headTime, headTime, quietMs) || tip.number < follower.headNumber
  return await readAgreedNonces(chain, await listener.accounts(isComplete), head.number)
}
