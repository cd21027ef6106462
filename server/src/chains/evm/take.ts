import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Transaction } from '../../database/db.ts'
import * as rows from '../rows.ts'
import type { Block, Chain } from './chain.ts'
import type { AccountNonce, Listener } from './listener.ts'
import { type Concerns, covers } from './search.ts'
import type { BlockVerdict } from './witnesses.ts'

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
   * Enough providers have searched everything up to this time, late enough to miss nothing; null if that has not
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
export async function takeMissed(
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

/** Records the last block up to which enough providers have found the same, late enough to miss nothing. */
export async function writeSettled(tx: Transaction, network: string, number: number): Promise<void> {
  await tx.query('update followers set settled_number = greatest(settled_number, $2) where network = $1', [
    network,
    number,
  ])
}
