import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Database, Transaction } from '../../database/db.ts'
import type { Hex } from '../hex.ts'
import * as rows from '../rows.ts'
import { isNodeError } from '../rpc.ts'
import type { AccountNonce } from './accounts.ts'
import type { Demand } from './cadence.ts'
import type { Block, BlockPlace, Chain, ChainLog } from './chain.ts'
import { type Concerns, covers, isConcerned, listFound, type RangeAccount } from './search.ts'
import { type BlockVerdict, type Lie, noteDispute, noteLies, paceOf, readVerdicts } from './witnesses.ts'

/** Stores blocks, each in one transaction with the rows that the listener derives from it. */
export type Believed = Extract<BlockVerdict, { kind: 'believed' }>

export type Taking = {
  /** The stored block before it: everything in between was searched. Null for the first block. */
  readonly after: rows.StoredBlock | null
  /** The addresses that were searched for in between. */
  readonly concerns: Concerns
  /** Whether something was found in it. Otherwise it is only the end of a range. */
  readonly isFound: boolean
  /**
   * The time up to which enough providers have searched everything, late enough to miss nothing; null if it has not
   * changed.
   */
  readonly settledUpTo: Date | null
  /** Whether the chain is known to have newer blocks. */
  readonly isBehind: boolean
  readonly nonces: readonly AccountNonce[]
}

/**
 * Adds a block to the end of the stored chain. False if another process was faster, or if an address can be paid now
 * that was not searched for in the blocks before.
 */
export async function takeBlock(
  ctx: Context,
  { network: { caip2: network, witnessesMin } }: Chain,
  { block, logs, toldBy, isDoubted }: Believed,
  { after, concerns, isFound, settledUpTo, isBehind, nonces }: Taking,
  listener: Listener,
): Promise<boolean> {
  const isTaken = await ctx.db.transaction(async (tx) => {
    await rows.lockFollower(tx, network)
    const tip = await rows.readTip(tx, network)
    if (tip?.hash !== after?.hash) return false
    if (after && !covers(concerns, await listener.concerns(tx))) return false
    await insertBlock(tx, network, block, { toldBy, isFound })
    await moveHead(tx, network, block, { toldBy, isBehind })
    if (settledUpTo) await settleUpTo(tx, network, settledUpTo)
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
 * Adds a block between stored ones, because an earlier search had missed something in it. False if the chain no longer
 * has the tip under which it was found.
 */
async function takeMissed(
  ctx: Context,
  { network: { caip2: network, witnessesMin } }: Chain,
  { block, logs, toldBy, isDoubted }: Believed,
  tip: rows.StoredBlock,
  listener: Listener,
): Promise<boolean> {
  const isTaken = await ctx.db.transaction(async (tx) => {
    await rows.lockFollower(tx, network)
    if (!(await isGap(tx, network, block.number, tip))) return false
    await insertBlock(tx, network, block, { toldBy, isFound: true })
    const isWitnessed = toldBy.length >= witnessesMin
    await listener.onBlock(tx, block, logs, { isWitnessed, isDoubted, isAgain: false })
    return true
  })
  if (isTaken) listener.onCommit()
  return isTaken
}

/** Whether this block is missing between stored blocks of the chain that contains this tip. */
async function isGap(
  tx: Transaction,
  network: string,
  number: number,
  tip: rows.StoredBlock,
): Promise<boolean> {
  const [row] = await tx.query<{ is_gap: boolean }>(
    `select exists (select 1 from blocks where network = $1 and number < $2)
       and exists (select 1 from blocks where network = $1 and number = $3 and hash = $4)
       and not exists (select 1 from blocks where network = $1 and number = $2) as is_gap`,
    [network, number, tip.number, tip.hash],
  )
  return row?.is_gap === true && number < tip.number
}

async function insertBlock(
  tx: Transaction,
  network: string,
  block: Block,
  { toldBy, isFound }: { readonly toldBy: readonly string[]; readonly isFound: boolean },
): Promise<void> {
  await tx.query(
    `insert into blocks (network, number, hash, parent_hash, block_time, told_by, is_found)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [network, block.number, block.hash, block.parentHash, block.time, toldBy, isFound],
  )
}

async function moveHead(
  tx: Transaction,
  network: string,
  block: Block,
  { toldBy, isBehind }: { readonly toldBy: readonly string[]; readonly isBehind: boolean },
): Promise<void> {
  await tx.query(
    `update followers set head_number = $2, head_time = $3, base_fee = $4, head_seen_at = clock(),
       witnesses = cardinality($5::text[]), is_behind = $6 where network = $1`,
    [network, block.number, block.time, block.baseFee.toString(), toldBy, isBehind],
  )
}

async function settleUpTo(tx: Transaction, network: string, time: Date): Promise<void> {
  await tx.query(
    `update followers set settled_number = greatest(settled_number, coalesce((select number from blocks
       where network = $1 and block_time <= $2 order by number desc limit 1), 0)) where network = $1`,
    [network, time],
  )
}

/** Records the last block up to which enough providers have found the same blocks, late enough to miss nothing. */
export async function writeSettled(tx: Transaction, network: string, number: number): Promise<void> {
  await tx.query('update followers set settled_number = greatest(settled_number, $2) where network = $1', [
    network,
    number,
  ])
}

type Reading = {
  /** Whether enough providers reported the block and its logs alike. */
  readonly isWitnessed: boolean
  /** Whether a provider has the block but none of these logs. */
  readonly isDoubted: boolean
  /** Whether the block was read before. Then a witnessed read replaces what is recorded of it. */
  readonly isAgain: boolean
}

/** The safe and the finalized block. */
export type Reached = { readonly safe: number; readonly finalized: number }

export type Listener = {
  /** The addresses to search the chain for. */
  concerns(db: Database | Transaction): Promise<Concerns>
  /** The logs of our tokens in a block of the chain. */
  onBlock(
    tx: Transaction,
    block: Omit<Block, 'baseFee'>,
    logs: readonly ChainLog[],
    reading: Reading,
  ): Promise<void>
  /** Blocks that are no longer part of the chain, which now ends at `number`. */
  onOrphaned(tx: Transaction, hashes: readonly Hex[], number: number): Promise<void>
  /**
   * The accounts whose nonces are needed: those of every process, because any process may lead. Without `isComplete`,
   * only those that have something in flight.
   */
  accounts(isComplete: boolean): Promise<readonly string[]>
  /** The nonces of the accounts at the end of the chain that was read. */
  onNonces(tx: Transaction, accounts: readonly AccountNonce[]): Promise<void>
  /** Whether anybody may be paying. */
  readDemand(): Promise<Demand>
  /** Whether anything waits for a block to become safe or finalized. */
  awaitsFinality(): Promise<boolean>
  /** How far finality may advance in one transaction. */
  reach(from: Reached, to: Reached): Promise<Reached>
  /**
   * Called when blocks have become safe or final; `isLast` means that no more follow. Returns whether that changed
   * anything.
   */
  onFinality(tx: Transaction, from: Reached, to: Reached, isLast: boolean): Promise<boolean>
  /** Called after each commit that may have changed something. */
  onCommit(): void
}

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

/**
 * A search only finds blocks. Their content is read by hash, with all logs of our tokens, and decided as for any block:
 * an authorization and its transfer are neighbours, but the search would return only one of them.
 */
type FoundBlock = {
  readonly number: number
  readonly verdict: BlockVerdict
  /** Whether something in it really concerns us. */
  readonly isOurs: boolean
}

export type Contents = {
  /** Blocks that were found and are not stored with their logs, lowest first. */
  readonly read: readonly FoundBlock[]
  /** The providers that have found every block with something in it. */
  readonly consistent: readonly RangeAccount[]
  /** Whether all blocks that they found were read: those above the tip, and those at or below it. */
  readonly isWhole: boolean
  readonly isWholeBelow: boolean
}

/** The search, and the stored blocks in its range. */
export type Searched = {
  readonly tip: rows.StoredBlock
  readonly stored: ReadonlyMap<number, rows.StoredBlock>
  readonly concerns: Concerns
  /** Blocks that were read while the range was searched. */
  readonly ahead?: Ahead
}

export type Ahead = ReadonlyMap<Hex, Believed>

/**
 * Reads blocks in which one provider has something that we sent, before a search finds them there. What enough providers
 * have said about a block need not be asked again.
 */
export async function readAhead(ctx: Context, chain: Chain, places: readonly BlockPlace[]): Promise<Ahead> {
  const verdicts = await readVerdicts(ctx, chain, places.slice(0, paceOf(chain)), true).catch((error) => {
    if (!isNodeError(error)) throw error
    return []
  })
  const { witnessesMin } = chain.network
  return new Map(
    verdicts.flatMap((verdict) =>
      verdict.kind === 'believed' && verdict.toldBy.length >= witnessesMin
        ? [[verdict.block.hash, verdict] as const]
        : [],
    ),
  )
}

/** How many of the blocks found at or below the tip are read per look, so that they don't hold up those above. */
const belowPerLook = 5

export async function readContents(
  ctx: Context,
  chain: Chain,
  telling: readonly RangeAccount[],
  { tip, stored, concerns, ahead }: Searched,
): Promise<Contents> {
  const { witnessesMin } = chain.network
  const pace = paceOf(chain)
  const found = listFound(telling)
  const isKnown = ({ number, hash }: BlockPlace) => {
    const block = stored.get(number)
    return block?.hash === hash && block.isFound && block.witnesses >= witnessesMin
  }
  const above = found.filter(({ number }) => number > tip.number)
  const below = found.filter((place) => place.number <= tip.number && !isKnown(place))
  const some = [...below.slice(0, belowPerLook), ...above.slice(0, pace)]
  const asked = some.filter(({ hash }) => !ahead?.has(hash))
  const verdicts = await readVerdicts(ctx, chain, asked, true)
  const read = some.flatMap(({ number, hash }): FoundBlock[] => {
    const verdict = ahead?.get(hash) ?? verdicts[asked.findIndex((one) => one.hash === hash)]
    return verdict ? [{ number, verdict, isOurs: isOurs(verdict, concerns) }] : []
  })
  await noteLies(ctx, chain, listMadeUp(telling, read, witnessesMin))
  const confirmed = [
    ...found.filter(isKnown),
    ...read.flatMap(({ number, verdict, isOurs }) =>
      isOurs && verdict.kind === 'believed' ? [{ number, hash: verdict.block.hash }] : [],
    ),
  ]
  return {
    read,
    consistent: telling.filter(({ hits }) =>
      confirmed.every(({ number, hash }) => hits?.get(number) === hash),
    ),
    isWhole: above.length <= pace,
    isWholeBelow: below.length <= belowPerLook,
  }
}

/** Providers that reported a finding in a block that is empty according to enough others. They lied. */
function listMadeUp(
  telling: readonly RangeAccount[],
  read: readonly FoundBlock[],
  witnessesMin: number,
): Lie[] {
  if (witnessesMin === 1) return []
  return read.flatMap(({ number, verdict, isOurs }) => {
    if (isOurs || verdict.kind !== 'believed' || verdict.toldBy.length < witnessesMin) return []
    return telling
      .filter(({ hits }) => hits?.get(number) === verdict.block.hash)
      .map(({ provider }) => ({ provider, what: `something found in block ${number}, in which nothing is` }))
  })
}

function isOurs(verdict: BlockVerdict, concerns: Concerns): boolean {
  return verdict.kind === 'believed' && verdict.logs.some((log) => isConcerned(log, concerns))
}

/** Stores blocks found at or below the tip that an earlier search missed. False if some can't be stored yet. */
export async function fillGaps(
  ctx: Context,
  chain: Chain,
  { follower, tip, stored }: Omit<Searched, 'concerns'> & { readonly follower: rows.Follower },
  { read, isWholeBelow }: Contents,
  listener: Listener,
): Promise<boolean> {
  let isFilled = isWholeBelow
  for (const { number, verdict, isOurs } of read) {
    if (number > tip.number) continue
    if (verdict.kind === 'disputed' || verdict.kind === 'forked')
      await noteDispute(ctx, chain, follower, verdict)
    if (verdict.kind !== 'believed') isFilled = false
    if (verdict.kind !== 'believed' || !isOurs) continue
    const block = stored.get(number)
    if (block?.isFound) continue
    const isTaken = block
      ? (await readAgain(ctx, chain, follower, [block], listener)).length === 0
      : await takeMissed(ctx, chain, verdict, tip, listener)
    if (!isTaken) isFilled = false
  }
  return isFilled
}
