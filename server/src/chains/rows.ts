import assert from 'node:assert/strict'
import type { Database, Transaction } from '../database/db.ts'
import type { EvmNetwork } from '../networks.ts'
import type { Block } from './evm/chain.ts'
import type { Hex } from './hex.ts'

/** How far a chain has been read. */
export type Follower = {
  readonly headNumber: number
  readonly headTime: Date | null
  readonly baseFee: bigint
  readonly safeNumber: number
  readonly finalizedNumber: number
  /**
   * Up to this block, enough providers have found the same in a search made late enough that no node still lacked a
   * block's logs.
   */
  readonly settledNumber: number
  /** How long ago the head last moved, by the database's clock. */
  readonly headAgeSeconds: number | null
  /** What the providers contradict each other about; null while they agree. */
  readonly dispute: string | null
  /** The measured time between blocks; null while it is not known. */
  readonly blockTimeMs: number | null
}

type FollowerRow = {
  head_number: string
  head_time: Date | null
  base_fee: string | null
  safe_number: string
  finalized_number: string
  settled_number: string
  head_age: number | null
  dispute: string | null
  block_time_ms: number | null
}

const followerColumns =
  'dispute, block_time_ms, head_number, head_time, base_fee, safe_number, finalized_number, settled_number, extract(epoch from clock() - head_seen_at)::float8 as head_age'

function toFollower(row: FollowerRow): Follower {
  return {
    headNumber: Number.parseInt(row.head_number, 10),
    headTime: row.head_time,
    baseFee: BigInt(row.base_fee ?? '0'),
    safeNumber: Number.parseInt(row.safe_number, 10),
    finalizedNumber: Number.parseInt(row.finalized_number, 10),
    settledNumber: Number.parseInt(row.settled_number, 10),
    headAgeSeconds: row.head_age,
    dispute: row.dispute,
    blockTimeMs: row.block_time_ms,
  }
}

/** Acquires or renews the lease on a network; null while another process holds it. */
export async function leaseFollower(
  db: Database,
  network: string,
  holder: string,
  seconds: number,
): Promise<Follower | null> {
  const [row] = await db.query<FollowerRow>(
    `insert into followers as f (network, lease_holder, leased_until)
     values ($1, $2, clock() + make_interval(secs => $3))
     on conflict (network) do update set lease_holder = $2, leased_until = excluded.leased_until
       where f.lease_holder = $2 or f.leased_until is null or f.leased_until <= clock()
     returning ${followerColumns}`,
    [network, holder, seconds],
  )
  return row ? toFollower(row) : null
}

/** Makes a network's row when it is first needed. For a chain that needs no lease, because its lock is enough. */
export function openFollower(db: Database, network: string): () => Promise<void> {
  let isOpen = false
  return async () => {
    if (!isOpen)
      await db.query('insert into followers (network) values ($1) on conflict do nothing', [network])
    isOpen = true
  }
}

export async function releaseFollower(db: Database, network: string, holder: string): Promise<void> {
  await db.query('update followers set leased_until = null where network = $1 and lease_holder = $2', [
    network,
    holder,
  ])
}

export async function readFollower(db: Database, network: string): Promise<Follower | null> {
  const [row] = await db.query<FollowerRow>(`select ${followerColumns} from followers where network = $1`, [
    network,
  ])
  return row ? toFollower(row) : null
}

/** Serialises changes to a network's stored chain across processes. */
export async function lockFollower(tx: Transaction, network: string): Promise<void> {
  await tx.query('select network from followers where network = $1 for no key update', [network])
}

export type BlockRow = {
  number: string
  hash: Hex
  parent_hash: Hex
  block_time: Date
  is_found: boolean
  told_by: string[]
}

/**
 * A block is stored if something was found in it, or if it ends a range that was searched. Everything between two
 * stored blocks was searched and contains nothing that concerns us.
 */
export type StoredBlock = Pick<Block, 'number' | 'hash' | 'parentHash' | 'time'> & {
  /** Whether it was read because something was found in it. */
  readonly isFound: boolean
  /** How many providers have reported it. */
  readonly witnesses: number
}

export function toBlock(row: BlockRow): StoredBlock {
  return {
    number: Number.parseInt(row.number, 10),
    hash: row.hash,
    parentHash: row.parent_hash,
    time: row.block_time,
    isFound: row.is_found,
    witnesses: row.told_by.length,
  }
}

/** The stored blocks after one number and up to another, by number. */
export async function listBlocksBetween(
  db: Database,
  network: string,
  { above, upTo }: { readonly above: number; readonly upTo: number },
): Promise<Map<number, StoredBlock>> {
  const rows = await db.query<BlockRow>(
    'select * from blocks where network = $1 and number > $2 and number <= $3',
    [network, above, upTo],
  )
  return new Map(rows.map(toBlock).map((block) => [block.number, block]))
}

export async function readTip(db: Database | Transaction, network: string): Promise<StoredBlock | null> {
  const [row] = await db.query<BlockRow>(
    'select * from blocks where network = $1 order by number desc limit 1',
    [network],
  )
  return row ? toBlock(row) : null
}

/** The newest blocks at or below a number, newest first. */
export async function readStoredBlocks(
  db: Database,
  network: string,
  upTo: number,
  limit: number,
): Promise<StoredBlock[]> {
  const rows = await db.query<BlockRow>(
    'select * from blocks where network = $1 and number <= $2 order by number desc limit $3',
    [network, upTo, limit],
  )
  return rows.map(toBlock)
}

/**
 * The newest deep block: one that is `negativeSeconds` older than the newest block that enough providers reported. A
 * time reported by one provider alone does not count. Null if there is none.
 */
export async function readDeepBlock(
  db: Database,
  { caip2, negativeSeconds, witnessesMin }: EvmNetwork,
): Promise<StoredBlock | null> {
  const [row] = await db.query<BlockRow>(
    `select deep.* from (
       select number, block_time from blocks where network = $1 and cardinality(told_by) >= $3
       order by number desc limit 1
     ) newest cross join lateral (
       select * from blocks where network = $1 and number < newest.number
         and block_time <= newest.block_time - make_interval(secs => $2)
       order by number desc limit 1
     ) deep`,
    [caip2, negativeSeconds, witnessesMin],
  )
  return row ? toBlock(row) : null
}

/**
 * Whether enough providers reported every stored block after `above` and up to `upTo`, and searched everything in
 * between.
 */
export async function isWitnessedUpTo(
  db: Database,
  network: string,
  range: { above: number; upTo: number; witnessesMin: number },
): Promise<boolean> {
  const rows = await db.query(
    `select 1 as one from blocks
     where network = $1 and number > $2 and number <= $3 and cardinality(told_by) < $4
     union all
     select 1 as one from followers where network = $1 and settled_number < $3 limit 1`,
    [network, range.above, range.upTo, range.witnessesMin],
  )
  return rows.length === 0
}

/** Records what the providers contradict each other about. False if that was already recorded. */
export async function writeDispute(db: Database, network: string, dispute: string | null): Promise<boolean> {
  const rows = await db.query(
    `update followers set dispute = $2, disputed_at = case when $2::text is not null then clock() end
     where network = $1 and (dispute is null) <> ($2::text is null) returning network`,
    [network, dispute],
  )
  return rows.length > 0
}

/** Providers that were caught lying within the last day. */
export async function listFaults(
  db: Database,
  network: string,
): Promise<{ provider: string; fault: string; faults: string }[]> {
  return await db.query(
    `select provider, fault, faults from node_faults where network = $1 and last_at > clock() - interval '1 day'
     order by provider`,
    [network],
  )
}

/**
 * The range of block numbers that contains every block with a time from `from` to `to`. Not all blocks are stored, so
 * the range begins after the last stored block that is earlier, and ends before the first one that is later. Null if
 * every stored block is earlier than `from`. `isComplete`: blocks from before `from` were read too.
 */
export async function readStoredRange(
  db: Database,
  network: string,
  from: Date,
  to: Date,
): Promise<{ first: number; last: number; isComplete: boolean } | null> {
  const [row] = await db.query<Record<'before' | 'lowest' | 'after' | 'highest', string | null>>(
    `select (select max(number) from blocks where network = $1 and block_time < $2) as before,
       (select min(number) from blocks where network = $1) as lowest,
       (select min(number) from blocks where network = $1 and block_time > $3) as after,
       (select max(number) from blocks where network = $1) as highest`,
    [network, from, to],
  )
  if (!row?.lowest || !row.highest) return null
  const number = (text: string) => Number.parseInt(text, 10)
  const first = row.before ? number(row.before) + 1 : number(row.lowest)
  const last = row.after ? number(row.after) - 1 : number(row.highest)
  return last < first ? null : { first, last, isComplete: row.before !== null }
}

/** Records the head of a chain that is not read block by block. Its stored time stays if no new one is given. */
export async function writeHead(
  db: Database,
  network: string,
  head: { readonly slot: number; readonly time: Date | null; readonly finalizedSlot: number },
): Promise<void> {
  await db.query(
    `update followers set head_number = $2, head_time = coalesce($3, head_time), safe_number = $2, finalized_number = $4, base_fee = 0,
       head_seen_at = clock() where network = $1 and head_number < $2`,
    [network, head.slot, head.time, head.finalizedSlot],
  )
}

/** The next block of a chain that this database holds, now. The caller has locked the network. */
export async function advanceHead(
  tx: Transaction,
  network: string,
): Promise<{ readonly number: number; readonly time: Date }> {
  const [row] = await tx.query<{ number: string; time: Date }>(
    `update followers set head_number = head_number + 1, safe_number = head_number + 1, head_time = clock(),
       head_seen_at = clock() where network = $1 returning head_number as number, head_time as time`,
    [network],
  )
  assert(row, 'a network has its row before blocks are added')
  return { number: Number.parseInt(row.number, 10), time: row.time }
}

/** Deletes the last hour of blocks, so that they are read again. The first block stays: reading continues from it. */
export async function deleteLastHour(tx: Transaction, network: string): Promise<void> {
  await tx.query(
    `delete from blocks where network = $1
       and block_time > (select max(block_time) - interval '1 hour' from blocks where network = $1)
       and number > (select min(number) from blocks where network = $1)`,
    [network],
  )
  await unsettle(tx, network)
}

/** The ranges above the remaining blocks must be searched again. */
export async function unsettle(tx: Transaction, network: string): Promise<void> {
  await tx.query(
    `update followers set settled_number = least(settled_number,
       coalesce((select max(number) from blocks where network = $1), 0)) where network = $1`,
    [network],
  )
}

/** Forgets everything read from a chain that was replaced by another with the same id. */
export async function forgetChain(db: Database, network: string): Promise<void> {
  await db.query(
    `with gone as (delete from blocks where network = $1)
     delete from followers where network = $1`,
    [network],
  )
}
