import { setTimeout as wait } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Transaction } from '../../database/db.ts'
import type { Hex } from '../hex.ts'
import * as rows from '../rows.ts'
import { RpcAnswerError } from '../rpc.ts'
import {
  type Block,
  type Chain,
  type Log,
  readBlocks,
  readHeadNumber,
  readHeads,
  readLogs,
  readLogsOfAll,
  readNonces,
} from './chain.ts'
import { topics } from './eip3009.ts'

/**
 * Follows one chain block by block. Blocks that were read are kept as a chain of hashes: the next block must name the
 * last one as its parent. If it does not, the chain was reorganised: the follower steps back to the last common block,
 * reports what was orphaned, and reads on from there. After downtime, the missing blocks are read like any others, in
 * order.
 *
 * Each block is one transaction: its row, and whatever the listener derives from its logs. So after a crash the block
 * is read again. One process leads; if two should ever believe they do, the row lock makes them take turns, and the
 * second finds its block already there.
 */
type Account = { readonly address: string; readonly nonce: number }

export type Listener = {
  /** The logs of our tokens in a block that has become part of the chain. */
  onBlock(tx: Transaction, block: Block, logs: readonly Log[]): Promise<void>
  /** Blocks that are no longer part of the chain, which now ends at `number`. */
  onOrphaned(tx: Transaction, hashes: readonly Hex[], number: number): Promise<void>
  /** The accounts whose nonces are needed: those of every process, because any process may lead. */
  accounts(): Promise<readonly string[]>
  /** The nonces of the accounts at the end of the chain that was read. */
  onNonces(tx: Transaction, accounts: readonly Account[]): Promise<void>
  /** Blocks up to `safe` and `finalized` have reached that finality. */
  onFinality(tx: Transaction, safe: number, finalized: number): Promise<void>
  /** Called after each commit that may have changed something. */
  onCommit(): void
}

const leaseSeconds = 10
/** Blocks per request when catching up. */
const blocksPerRead = 20
/** Blocks compared at a time when stepping back. */
const stepBack = 32
/** How often per block time we poll for a block that is due, and how many times at most. */
const dueLooksPerBlock = 40
const dueLooksMax = 14
/** Blocks kept below the finalized one, for queries about the recent past. */
const blocksKept = 5_000

/** Looks at the chain once. True if there may be more to read at once. Null if another process leads. */
export async function followOnce(
  ctx: Context,
  chain: Chain,
  holder: string,
  listener: Listener,
): Promise<boolean | null> {
  const network = chain.network.caip2
  const follower = await rows.leaseFollower(ctx.db, network, holder, leaseSeconds)
  if (!follower) return null
  await waitForNext(chain, follower)
  const heads = await readHeads(chain)
  const tip = await rows.readTip(ctx.db, network)
  if (!heads) return false
  // The first time, reading starts at the current head: nothing before it can be ours.
  const from = tip ? tip.number + 1 : heads.latest.number
  if (tip && heads.latest.number <= tip.number) {
    const [stored] = await rows.readStoredBlocks(ctx.db, network, heads.latest.number, 1)
    // A node that is merely behind has the same block at its height as we do.
    if (stored?.number === heads.latest.number && stored.hash !== heads.latest.hash)
      return await turnBack(ctx, chain, listener)
    return await advanceFinality(ctx, chain, follower, heads.safe, heads.finalized, tip.number, listener)
  }

  const numbers = Array.from(
    { length: Math.min(blocksPerRead, heads.latest.number - from + 1) },
    (_, i) => from + i,
  )
  const last = numbers.at(-1) ?? from
  const blocks =
    numbers.length === 1 && last === heads.latest.number ? [heads.latest] : await readBlocks(chain, numbers)
  const linked = takeLinked(blocks, tip?.hash ?? null)
  if (linked.length === 0) return tip ? await turnBack(ctx, chain, listener) : false
  const end = linked.at(-1)?.number ?? last
  // Only at the head: many nodes keep no older state, and while catching up, older nonces would be outdated at once.
  const accounts = end === heads.latest.number ? await listener.accounts() : []
  const [logs, nonces] = await Promise.all([
    readLogs(
      chain,
      linked.map(({ hash }) => hash),
      Object.values(topics),
    ),
    readNonces(chain, accounts, end),
  ])
  const known = accounts.map((address, i) => ({ address, nonce: nonces[i] ?? 0 }))
  for (const [i, block] of linked.entries()) {
    const isTaken = await takeBlock(
      ctx,
      network,
      block,
      logs[i] ?? [],
      listener,
      block.number === heads.latest.number ? known : null,
    )
    if (!isTaken) return true
  }
  await advanceFinality(ctx, chain, follower, heads.safe, heads.finalized, end, listener)
  return end < heads.latest.number
}

/**
 * Blocks come at regular times. If the next one is due before the next poll, we wait for it here and see it at once,
 * because payers are waiting for it. An overdue block is left to the usual polls.
 */
async function waitForNext(chain: Chain, { headNumber, headAgeSeconds }: rows.Follower): Promise<void> {
  const { blockTimeMs } = chain.network
  // The last block was recorded a little after it came.
  const dueMs = 0.9 * blockTimeMs - (headAgeSeconds ?? 0) * 1_000
  if (dueMs > blockTimeMs / 8 || dueMs < -blockTimeMs / 8) return
  await wait(Math.max(0, dueMs))
  for (let i = 0; i < dueLooksMax && (await readHeadNumber(chain)) <= headNumber; i++)
    await wait(blockTimeMs / dueLooksPerBlock)
}

/** The blocks up to the first one that is missing or does not follow its predecessor. */
function takeLinked(blocks: readonly (Block | null)[], tip: Hex | null): Block[] {
  const linked: Block[] = []
  let parent = tip
  for (const block of blocks) {
    if (!block || (parent !== null && block.parentHash !== parent)) break
    linked.push(block)
    parent = block.hash
  }
  return linked
}

async function takeBlock(
  ctx: Context,
  network: string,
  block: Block,
  logs: readonly Log[],
  listener: Listener,
  nonces: readonly Account[] | null,
): Promise<boolean> {
  const isTaken = await ctx.db.transaction(async (tx) => {
    await rows.lockFollower(tx, network)
    const tip = await rows.readTip(tx, network)
    // Another process was faster.
    if (tip && tip.hash !== block.parentHash) return false
    await rows.insertBlock(tx, network, block)
    await listener.onBlock(tx, block, logs)
    if (nonces) await listener.onNonces(tx, nonces)
    if (logs.length > 0) crashPoint(ctx, 'block-before-commit')
    return true
  })
  if (isTaken && logs.length > 0) crashPoint(ctx, 'block-after-commit')
  if (isTaken) listener.onCommit()
  return isTaken
}

/** Steps back to the last block that the chain still has. */
async function turnBack(ctx: Context, chain: Chain, listener: Listener): Promise<boolean> {
  const network = chain.network.caip2
  let upTo = Number.MAX_SAFE_INTEGER
  let tip: Hex | null = null
  let isReplaced = false
  for (;;) {
    const stored = await rows.readStoredBlocks(ctx.db, network, upTo, stepBack)
    tip ??= stored[0]?.hash ?? null
    const actual =
      stored.length === 0
        ? []
        : await readBlocks(
            chain,
            stored.map(({ number }) => number),
          )
    const common = stored.findIndex((block, i) => actual[i]?.hash === block.hash)
    isReplaced ||= stored.some((block, i) => actual[i] && actual[i].hash !== block.hash)
    const lowest = stored.at(-1)
    if (common === -1 && lowest && lowest.number > 0 && stored.length === stepBack) {
      upTo = lowest.number - 1
      continue
    }
    // A node that does not have our blocks, and has no others in their place, is merely behind.
    if (!isReplaced) return false
    // No block in common: everything we kept is orphaned, and reading starts again at its first block.
    const number = stored[common]?.number ?? (lowest ? lowest.number - 1 : 0)
    const isTurned = await ctx.db.transaction(async (tx) => {
      await rows.lockFollower(tx, network)
      // Another process was faster.
      if ((await rows.readTip(tx, network))?.hash !== tip) return false
      const orphaned = await rows.deleteBlocksAbove(tx, network, number)
      if (orphaned.length > 0) await listener.onOrphaned(tx, orphaned, number)
      crashPoint(ctx, 'orphan-before-commit')
      return true
    })
    if (isTurned) crashPoint(ctx, 'orphan-after-commit')
    listener.onCommit()
    return true
  }
}

/**
 * Moves `safe` and `finalized` up to what was read, and reads the blocks that became safe a second time, so that
 * anything the first reading missed is found before anybody relies on it.
 */
async function advanceFinality(
  ctx: Context,
  chain: Chain,
  before: rows.Follower,
  safeSeen: number,
  finalizedSeen: number,
  end: number,
  listener: Listener,
): Promise<boolean> {
  const network = chain.network.caip2
  const finalized = Math.max(before.finalizedNumber, Math.min(finalizedSeen, end))
  let safe = Math.max(before.safeNumber, finalized, Math.min(safeSeen, end))
  if (safe === before.safeNumber && finalized === before.finalizedNumber) return false
  const again = (await rows.readStoredBlocks(ctx.db, network, safe, safe - before.safeNumber))
    .filter(({ number }) => number > before.safeNumber)
    .reverse()
    .slice(0, blocksPerRead)
  safe = again.at(-1)?.number ?? safe
  const logs = await readLogsAgain(
    chain,
    again.map(({ hash }) => hash),
  )
  const isMoved = await ctx.db.transaction(async (tx) => {
    await rows.lockFollower(tx, network)
    for (const [i, block] of again.entries()) {
      // Another process may have turned back: reading a block again must not bring it back into the chain.
      if (!(await rows.readStoredBlock(tx, network, block.hash))) return false
      await listener.onBlock(tx, { ...block, baseFee: 0n }, logs[i] ?? [])
    }
    await rows.writeFinality(tx, network, safe, Math.min(finalized, safe))
    await listener.onFinality(tx, safe, Math.min(finalized, safe))
    if (logs.some(({ length }) => length > 0)) crashPoint(ctx, 'finality-before-commit')
    return true
  })
  if (isMoved && logs.some(({ length }) => length > 0)) crashPoint(ctx, 'finality-after-commit')
  await rows.deleteBlocksBelow(ctx.db, network, finalized - blocksKept)
  listener.onCommit()
  return safe < Math.min(safeSeen, end)
}

/** The logs of blocks that were read before, from a different node than the first time if one has them. */
async function readLogsAgain(chain: Chain, hashes: readonly Hex[]): Promise<Log[][]> {
  const wanted = Object.values(topics)
  return await readLogs(chain, hashes, wanted, chain.rpc.batchElsewhere).catch((error) => {
    // The other node may be too far behind to have them.
    if (!(error instanceof RpcAnswerError)) throw error
    return readLogs(chain, hashes, wanted)
  })
}

/** Reads blocks of the chain once more, from every node, to find what was missed in them. */
export async function readBlocksAgain(
  ctx: Context,
  chain: Chain,
  hashes: readonly Hex[],
  listener: Listener,
): Promise<void> {
  const network = chain.network.caip2
  for (const hash of hashes) {
    const logs = await readLogsOfAll(chain, hash, Object.values(topics))
    await ctx.db.transaction(async (tx) => {
      await rows.lockFollower(tx, network)
      const block = await rows.readStoredBlock(tx, network, hash)
      if (block) await listener.onBlock(tx, { ...block, baseFee: 0n }, logs)
    })
  }
  listener.onCommit()
}
