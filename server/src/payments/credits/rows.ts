import type { Disposition, EventType } from '@farthing/sdk'
import type { Hex } from '../../chains/hex.ts'
import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import type { CheckoutId, StoreId } from '../../ids.ts'
import { idOfNetwork, networks } from '../../networks.ts'
import { type CreditRow, type RawCredit, toCreditRow } from './credit.ts'

/** A plain transfer to one of our wallets, as the chain shows it. */
export type SeenPlain = {
  readonly asset: string
  readonly payer: string
  readonly to: string
  readonly value: bigint
  readonly transactionHash: string
  readonly logIndex: number
  /**
   * Index among the transfers of the transaction with the same token, payer, recipient and amount. Unlike logIndex, it
   * stays the same in another block, and when a read missed other transfers.
   */
  readonly position: number
}

/** A transfer by an authorization with this nonce. */
export type Seen = SeenPlain & { readonly nonce: string }

/** A transfer by authorization that concerns us: it has one of our claims, or pays one of our wallets. */
export type Concern = {
  readonly seen: Seen
  readonly claim: {
    readonly checkoutId: string | null
    readonly storeId: string | null
    readonly isMatch: boolean
    /**
     * Whether somebody else sent it first, and its wallet is also paid outside Farthing, or it was sent before it was
     * presented here. It may have paid for something else, so it does not pay its checkout, and the store decides about
     * it.
     */
    readonly isForeign?: boolean
    /** Whether it will most likely pay its checkout, which the caller has locked. */
    readonly isExpected?: boolean
  } | null
}

/** The claim that a transfer by authorization was sent for. A refund's money does not belong to the store that sent it. */
export async function findClaim(tx: Transaction, network: string, seen: Seen): Promise<Concern[]> {
  const rows = await tx.query<{ checkoutId: string | null; storeId: string | null; isMatch: boolean }>(
    `select checkout_id as "checkoutId", case when checkout_id is not null then store_id end as "storeId", pay_to = $5 and amount = $6 as "isMatch"
     from authorizations where network = $1 and asset = $2 and payer = $3 and nonce = $4`,
    [network, seen.asset, seen.payer, seen.nonce, seen.to, seen.value.toString()],
  )
  return rows.map((claim) => ({ seen, claim }))
}

/** Locks those checkouts that wait for a payment, and returns them. */
export async function lockWaiting(tx: Transaction, checkoutIds: readonly string[]): Promise<Set<string>> {
  const rows = await tx.query<{ id: string }>(
    `select id from checkouts where id = any($1) and status = 'PROCESSING' order by id for no key update`,
    [checkoutIds],
  )
  return new Set(rows.map(({ id }) => id))
}

/**
 * Orphans the credits of blocks that left the chain. Credits that too few providers reported also give up their places,
 * so that a new read decides if the block comes back. Returns the checkouts affected.
 */
export async function orphanCredits(
  tx: Transaction,
  network: string,
  hashes: readonly string[],
): Promise<string[]> {
  const rows = await tx.query<{ checkout_id: string | null }>(
    `with gone as (
       select k.block_hash, k.log_index, case when k.witnessed_at is null then ${placeOutside('k')} else k.log_index end as place
       from credits k where k.network = $1 and k.block_hash = any($2) and k.orphaned_at is null
     )
     update credits k set orphaned_at = clock(), safe_at = null, finalized_at = null, log_index = g.place
     from gone g where k.network = $1 and k.block_hash = g.block_hash and k.log_index = g.log_index
     returning k.checkout_id`,
    [network, hashes],
  )
  return rows.flatMap(({ checkout_id }) => checkout_id ?? [])
}

/**
 * Records the finality of single places, on chains where a block number says nothing about the blocks below it. Returns
 * the checkouts affected.
 */
export async function advancePlaces(
  tx: Transaction,
  network: string,
  hashes: readonly string[],
  finality: 'safe' | 'finalized',
): Promise<string[]> {
  const rows = await tx.query<{ checkout_id: string | null }>(
    `update credits set safe_at = coalesce(safe_at, clock()),
       finalized_at = case when $3 = 'finalized' then coalesce(finalized_at, clock()) else finalized_at end
     where network = $1 and block_hash = any($2) and orphaned_at is null
       and (safe_at is null or (finalized_at is null and $3 = 'finalized'))
     returning checkout_id`,
    [network, hashes, finality],
  )
  return rows.flatMap(({ checkout_id }) => checkout_id ?? [])
}

/** Unmatched money that is safe on the chain and has not been announced, once per owner; `ownerId` is null if none. */
export async function listUnannounced(
  tx: Transaction,
  network: string,
): Promise<(CreditRow & { ownerId: StoreId | null })[]> {
  const rows = await tx.query<RawCredit & { owner_id: StoreId | null }>(
    `select k.*, false as is_included_again, false as is_claimed, false as is_reserved, o.store_id as owner_id,
       ${hintsFor('o.store_id')}
     from (select * from credits where network = $1 and orphaned_at is null and checkout_id is null
       and safe_at is not null and announced is null limit 1000) k
     left join lateral ${ownersOf('$2')} o on true`,
    [network, modeOf(network)],
  )
  return rows.map((row) => ({ ...toCreditRow(row), ownerId: row.owner_id }))
}

/**
 * Undecided money in an asset that belongs to no checkout, counted up to `max` payments. A refund's transfer counts only
 * if it went to another store's wallet.
 */
export async function countUnmatched(
  db: Database,
  network: string,
  asset: string,
  unitsMin: bigint,
  max: number,
): Promise<{ readonly payments: number; readonly units: string }> {
  const [row] = await db.query<{ payments: number; units: string }>(
    `select count(*)::integer as payments, coalesce(sum(amount), 0)::text as units from (
       select amount from credits k where network = $1 and asset = $2 and orphaned_at is null and checkout_id is null
         and dismissed_at is null and amount >= $3 and exists (select 1 from wallets w where w.pay_to = k.pay_to)
       limit $4) waiting`,
    [network, asset, unitsMin.toString(), max],
  )
  return row ?? { payments: 0, units: '0' }
}

export async function noteAnnounced(
  tx: Transaction,
  network: string,
  paymentIds: readonly string[],
): Promise<void> {
  await tx.query(
    `update credits set announced = 'unmatched' where network = $1 and payment_id = any($2) and orphaned_at is null
       and checkout_id is null and announced is null`,
    [network, paymentIds],
  )
}

/**
 * Marks a credit `k` as one that can never return. If the payment was in several blocks, only its last credit is
 * announced.
 */
export const reversal = `reversed_at = clock(), announced = case when exists (select 1 from credits o
    where o.payment_id = k.payment_id and (o.included_at, o.block_hash) > (k.included_at, k.block_hash))
  then 'reversed' else k.announced end`

/** A credit that stops being exact is written before the one that replaces it. */
export async function writeDispositions(
  tx: Transaction,
  changed: readonly { key: string; disposition: Disposition }[],
): Promise<void> {
  const input = changed.map(({ key, disposition }) => ({ ...parseKey(key), disposition }))
  for (const group of [
    input.filter((row) => row.disposition !== 'exact'),
    input.filter((row) => row.disposition === 'exact'),
  ]) {
    if (group.length === 0) continue
    await tx.query(
      `update credits k set disposition = i.disposition
       from json_to_recordset($1) as i (network text, block_hash text, log_index integer, disposition text)
       where k.network = i.network and k.block_hash = i.block_hash and k.log_index = i.log_index`,
      [JSON.stringify(group)],
    )
  }
}

export type Announcement = {
  readonly key: string
  readonly announcement: Exclude<Disposition, 'exact'> | 'finalized' | 'reorged' | 'reversed'
  readonly event_id: string
  readonly store_id: string
  readonly type: EventType
  readonly checkout_id: string
  readonly checkout_version: number
  readonly data: object
  readonly created_at: Date
}

export async function writeAnnouncements(
  tx: Transaction,
  announcements: readonly Announcement[],
): Promise<void> {
  await tx.query(
    `with input as (
       select * from json_to_recordset($1) as i (network text, block_hash text, log_index integer, announcement text,
         event_id text, store_id text, type text, checkout_id text, checkout_version integer, data json,
         created_at timestamptz)
     ), marked as (
       update credits k set announced = i.announcement,
         finalized_at = case when i.announcement = 'finalized' then coalesce(k.finalized_at, clock()) else k.finalized_at end
       from input i
       where k.network = i.network and k.block_hash = i.block_hash and k.log_index = i.log_index
     )
     insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at)
     select event_id, store_id, type, checkout_id, checkout_version, data, created_at from input`,
    [JSON.stringify(announcements.map(({ key, ...row }) => ({ ...parseKey(key), ...row })))],
  )
}

function parseKey(key: string): { network: string; block_hash: string; log_index: number } {
  const [network = '', block_hash = '', log_index = ''] = key.split(' ')
  return { network, block_hash, log_index: Number.parseInt(log_index, 10) }
}

/**
 * SQL: whether the transfer `i` was counted before, and its credit was deleted or its payer erased since. If a read
 * missed the transfer's authorization, its position identifies it. $1 is the network.
 */
export const isKept = (i: string) => `exists (select 1 from kept_credits x where x.key in (
  credit_key($1, ${i}.transaction_hash, ${i}.asset, ${i}.payer, ${i}.pay_to, ${i}.amount, ${i}.position),
  nonce_key($1, ${i}.asset, ${i}.payer, ${i}.nonce)))`

/** Above every position of a transfer. Positions from here on belong to erased payers. */
export const erasedPosition = 1_000_000

/**
 * SQL: a log index for the credit `k` that no block has, so that its place is free for the real transfer. A window
 * function, over all credits that the statement moves.
 */
export function placeOutside(k: string): string {
  return `(select least(0, min(o.log_index)) from credits o where o.network = ${k}.network and o.block_hash = ${k}.block_hash)
    - row_number() over (partition by ${k}.block_hash order by ${k}.log_index)`
}

/** A plain transfer that was on the chain, no longer is, and may come back. */
export type OrphanedTransfer = {
  readonly transactionHash: Hex
  readonly sender: Hex | null
  readonly senderNonce: number | null
  readonly isOld: boolean
}

export async function listOrphanedTransfers(
  db: Database,
  network: string,
  oldMinutes: number,
  limit: number,
): Promise<OrphanedTransfer[]> {
  const rows = await db.query<Omit<OrphanedTransfer, 'senderNonce'> & { senderNonce: string | null }>(
    `select k.transaction_hash as "transactionHash", k.sender, k.sender_nonce as "senderNonce",
       k.orphaned_at <= clock() - make_interval(mins => $2) as "isOld"
     from credits k
     where k.network = $1 and k.orphaned_at is not null and k.reversed_at is null and k.nonce is null
       and not exists (select 1 from credits o where o.network = k.network
         and o.transaction_hash = k.transaction_hash and o.asset = k.asset and o.position = k.position
         and o.orphaned_at is null)
     order by k.orphaned_at limit $3`,
    [network, oldMinutes, limit],
  )
  return rows.map(({ senderNonce, ...row }) => ({
    ...row,
    senderNonce: senderNonce === null ? null : Number.parseInt(senderNonce, 10),
  }))
}

/** Reverses transfers that will not come back, unless they already have. Returns the checkouts affected. */
export async function reverseOrphanedTransfers(
  tx: Transaction,
  network: string,
  transactionHashes: readonly Hex[],
): Promise<string[]> {
  const rows = await tx.query<{ checkout_id: string | null }>(
    `update credits k set ${reversal}
     where k.network = $1 and k.transaction_hash = any($2) and k.nonce is null and k.orphaned_at is not null
       and k.reversed_at is null
       and not exists (select 1 from credits o where o.network = k.network
         and o.transaction_hash = k.transaction_hash and o.asset = k.asset and o.position = k.position
         and o.orphaned_at is null)
     returning k.checkout_id`,
    [network, transactionHashes],
  )
  return rows.flatMap(({ checkout_id }) => checkout_id ?? [])
}

/**
 * SQL: who owns money that matches no checkout. Several stores may have registered the same wallet, so such a credit
 * has no store of its own. Each read derives its owners from the wallets: see `payment_owners` in the schema.
 */

/** The owners of credit `k` among the stores of a mode (SQL). */
export function ownersOf(mode: string): string {
  return `payment_owners(k.pay_to, k.included_at, ${mode})`
}

/**
 * The same for one store ($1). It also works in the console, which sees no other store's wallets. Null if credit `k`
 * does not belong to the store, else whether the store may decide about it.
 */
export function rightOf(mode: string): string {
  return `payment_right($1, k.pay_to, k.included_at, ${mode})`
}

/**
 * The checkouts of a store (SQL) that an unmatched credit `k` may have been meant for. They are not deleted while it is
 * unmatched.
 */
export function hintsFor(storeId: string): string {
  return `(select json_agg(json_build_object('checkoutId', h.checkout_id, 'disposition', h.disposition)
    order by h.created_at, h.checkout_id) from payment_hints h join checkouts c on c.id = h.checkout_id
    where h.payment_id = k.payment_id and k.checkout_id is null and c.store_id = ${storeId}) as hints`
}

/**
 * Whether money at an address may be assigned to a store by its amount alone (store, address and mode are SQL). Not if
 * others have proven the wallet and the store has not.
 */
export function mayMatchAt(storeId: string, payTo: string, mode: string): string {
  return `(exists (select 1 from wallets w where w.store_id = ${storeId} and w.pay_to = ${payTo} and w.proven_at is not null)
    or not exists (select 1 from wallets w join stores s on s.id = w.store_id and s.mode = ${mode}
      where w.pay_to = ${payTo} and w.proven_at is not null))`
}

/** A test store owns nothing on a live network, although an address is the same on all networks. */
export function modeOf(caip2: string): string {
  return networks.find((network) => network.caip2 === caip2)?.mode ?? ''
}

export function networksOf(mode: string): string[] {
  return networks.filter((network) => network.mode === mode).map(({ caip2 }) => caip2)
}

/** SQL for the finality of credits on chains that are read block by block. */

/** A payment that has become safe, and whose checkout is and stays COMPLETED. */
export type NewlySafe = {
  readonly checkoutId: CheckoutId
  readonly paymentId: string
  readonly transaction: string
  readonly blockNumber: string
  readonly disposition: Disposition
}

/**
 * SQL: whether the credit `k` completes a checkout. Its finality is left to `readFacts` and `writeAnnouncements`,
 * because it must be written together with its announcement.
 */
export const isFinalByAnnouncement = `k.disposition = 'exact' and k.orphaned_at is null and k.witnessed_at is not null`

/**
 * The highest block up to which at most `limit` credits are not final, or the first block with any if that has more.
 */
export async function findReach(
  db: Database,
  network: string,
  range: { readonly above: number; readonly upTo: number },
  limit: number,
): Promise<number> {
  const waiting = `select block_number from credits where network = $1 and orphaned_at is null and finalized_at is null
    and block_number > $2 and block_number <= $3 order by block_number`
  const [row] = await db.query<{ first: string | null; next: string | null }>(
    `select (${waiting} limit 1) as first, (${waiting} offset $4 limit 1) as next`,
    [network, range.above, range.upTo, limit],
  )
  if (!row?.first || !row.next) return range.upTo
  return Math.max(Number.parseInt(row.first, 10), Number.parseInt(row.next, 10) - 1)
}

/**
 * Records the finality of the credits in a range of blocks. Returns the checkouts to evaluate again, and the payments
 * that became safe in COMPLETED checkouts, which need no evaluation.
 */
export async function advanceCredits(
  tx: Transaction,
  network: string,
  { safe, finalized }: { readonly safe: number; readonly finalized: number },
  range: { readonly above: number; readonly upTo: number },
): Promise<{ readonly checkoutIds: readonly string[]; readonly safe: readonly NewlySafe[] }> {
  const rows = await tx.query<NewlySafe & { isDone: boolean }>(
    `with advanced as (
       update credits k set safe_at = coalesce(k.safe_at, clock()),
         finalized_at = case when k.block_number <= $3 and not (${isFinalByAnnouncement}) then clock() end
       where k.network = $1 and k.orphaned_at is null and k.finalized_at is null
         and k.block_number > $4 and k.block_number <= least($5::bigint, greatest($2::bigint, $3::bigint))
         and (k.safe_at is null or (k.block_number <= $3 and not (${isFinalByAnnouncement})))
       returning k.checkout_id, k.payment_id, k.transaction_hash, k.block_number, k.disposition
     ), final as (
       select k.checkout_id, k.payment_id, k.transaction_hash, k.block_number, k.disposition from credits k
       where k.network = $1 and k.orphaned_at is null and k.finalized_at is null and k.block_number <= $3
         and ${isFinalByAnnouncement}
     )
     select a.checkout_id as "checkoutId", a.payment_id as "paymentId", a.transaction_hash as "transaction",
       a.block_number as "blockNumber", a.disposition,
       a.block_number > $3 and (select c.status from checkouts c where c.id = a.checkout_id) = 'COMPLETED' as "isDone"
     from (table advanced union table final) a where a.checkout_id is not null`,
    [network, safe, finalized, range.above, range.upTo],
  )
  return {
    checkoutIds: [...new Set(rows.filter(({ isDone }) => !isDone).map(({ checkoutId }) => checkoutId))],
    safe: rows.filter(({ isDone }) => isDone),
  }
}

export const safeSentence = 'payment safe: its block is not expected to be replaced'

/** Logs each payment that has become safe, after the commit. */
export function reportSafe(
  ctx: Context,
  tx: Transaction,
  network: string,
  payments: readonly NewlySafe[],
): void {
  if (payments.length === 0) return
  tx.afterCommit(() => {
    for (const { checkoutId, paymentId, transaction, blockNumber, disposition } of payments)
      ctx.log.info(
        {
          checkoutId,
          paymentId,
          network: idOfNetwork(network),
          txHash: transaction,
          block: Number.parseInt(blockNumber, 10),
          disposition,
          finality: 'safe',
          status: 'COMPLETED',
        },
        safeSentence,
      )
  })
}
