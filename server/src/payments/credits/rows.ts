import type { Disposition, EventType } from '@farthing/sdk'
import type { Database, Transaction } from '../../database/db.ts'
import type { StoreId } from '../../ids.ts'
import { type CreditRow, type RawCredit, toCreditRow } from './credit.ts'
import { hintsFor, modeOf, ownersOf } from './owner-rows.ts'
import { isKept, makeRoom, numberLeftOut, placeOutside } from './place-rows.ts'

/** SQL for credits: money seen on the chain. */
export type SeenPlain = {
  readonly asset: string
  readonly payer: string
  readonly to: string
  readonly value: bigint
  readonly transactionHash: string
  readonly logIndex: number
  /**
   * Index among the transfers of the transaction with the same token, payer, recipient and amount. Unlike logIndex, it
   * survives inclusion in another block, and a reading that missed other transfers.
   */
  readonly position: number
}
/** A transfer by an authorization with this nonce. */
export type Seen = SeenPlain & { readonly nonce: string }

type Key = { readonly asset: string; readonly payer: string; readonly nonce: string }
/** Where the money was seen. */
export type Place = { readonly hash: string; readonly number: number; readonly time: Date }

/** A transfer by authorization that concerns us: it has one of our claims, or pays one of our wallets. */
export type Concern = {
  readonly seen: Seen
  readonly claim: {
    readonly checkoutId: string | null
    readonly storeId: string | null
    readonly isMatch: boolean
    /**
     * Whether somebody else sent it before we did, to a wallet that is also paid outside Farthing or before it was
     * presented here: it may have paid for something else. Then it does not pay its checkout by itself, and the store
     * decides.
     */
    readonly isForeign?: boolean
    /** Whether it will most likely pay its checkout, which the caller has locked. */
    readonly isExpected?: boolean
  } | null
}

export type NewCredit = {
  readonly seen: Seen | (SeenPlain & { readonly nonce: null })
  readonly paymentId: string
  readonly checkoutId: string | null
  /** The checkout's store. */
  readonly storeId: string | null
  /**
   * Whether it is written as exact at once, if it is new and its checkout has had no exact credit: one that the chain
   * removed may come back in the same block. The caller has locked the checkout.
   */
  readonly isExpected: boolean
  /** Who sent the transaction of a plain transfer, if that is known. */
  readonly sender: { readonly address: string; readonly nonce: number } | null
}

/**
 * Writes the credits found in a block. A new inclusion of the same transfer orphans the old credit and keeps what was
 * decided about it. When a block becomes canonical again, its credits are no longer orphaned, but one that was exact
 * becomes overpaid if another credit is exact by then. An unmatched credit whose claim has turned up is assigned to
 * that claim. The disposition is decided under the checkout's lock when its status is updated, in the same transaction;
 * until then, a credit with a checkout counts as overpaid, or as exact if that is expected, so that it need not be
 * written twice. If an earlier reading of the block told of another transfer at the same place, that one stays: a
 * witnessed reading has withdrawn it before. A transfer that counted long ago, and whose credit is deleted, is never
 * written again. Returns only the checkouts of credits that are new or changed, since blocks
 * are read again.
 */
export async function upsertCredits(
  tx: Transaction,
  network: string,
  block: Place,
  credits: readonly NewCredit[],
  isWitnessed: boolean,
): Promise<string[]> {
  const input = JSON.stringify(
    credits.map(({ seen, paymentId, checkoutId, storeId, isExpected, sender }) => ({
      log_index: seen.logIndex,
      payment_id: paymentId,
      transaction_hash: seen.transactionHash,
      position: seen.position,
      asset: seen.asset,
      payer: seen.payer,
      nonce: seen.nonce,
      pay_to: seen.to,
      amount: seen.value.toString(),
      store_id: storeId,
      checkout_id: checkoutId,
      is_expected: isExpected,
      sender: sender?.address ?? null,
      sender_nonce: sender?.nonce ?? null,
    })),
  )
  const isAnyLeft = await makeRoom(tx, network, block.hash, input)
  const rows = await tx.query<{ checkout_id: string | null }>(
    `insert into credits as k (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, nonce, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time,
       included_at, accepted_at, dismissed_at, sender, sender_nonce, witnessed_at, counts)
     select $1, $3, i.log_index, coalesce(e.payment_id, i.payment_id), $4, $5, i.transaction_hash,
       i.position, i.asset, i.payer, i.nonce, i.pay_to, i.amount,
       case when e.checkout_id is null then i.store_id else e.store_id end, coalesce(e.checkout_id, i.checkout_id),
       case when coalesce(e.checkout_id, i.checkout_id) is null then 'unmatched'
         when i.is_expected and e.checkout_id is null and not exists (select 1 from credits o
           where o.checkout_id = i.checkout_id and o.disposition = 'exact') then 'exact'
         else 'overpaid' end,
       coalesce(e.first_seen_block_time, $5), clock(), e.accepted_at, e.dismissed_at,
       coalesce(e.sender, i.sender), coalesce(e.sender_nonce, i.sender_nonce), case when $6 then clock() end, $6
     from json_to_recordset($2) as i (log_index integer, payment_id text, transaction_hash text, position integer,
       asset text, payer text, nonce text, pay_to text, amount numeric, store_id text, checkout_id text,
       is_expected boolean, sender text, sender_nonce bigint)
     cross join lateral (select min(o.payment_id) as payment_id, min(o.first_seen_block_time) as first_seen_block_time,
         max(o.checkout_id) as checkout_id, max(o.store_id) as store_id, max(o.accepted_at) as accepted_at,
         max(o.dismissed_at) as dismissed_at, max(o.sender) as sender, max(o.sender_nonce) as sender_nonce
       from (
         ${creditsOfTransfer('orphaned_at is null')} union all ${creditsOfTransfer('orphaned_at is not null')}
       ) o) e
     where not ${isKept('i')}
     on conflict (network, block_hash, log_index) do update set
       orphaned_at = null,
       reversed_at = null,
       position = excluded.position,
       witnessed_at = coalesce(k.witnessed_at, excluded.witnessed_at),
       counts = k.counts or excluded.counts,
       announced = case when k.announced in ('reorged', 'reversed') then null else k.announced end,
       checkout_id = coalesce(k.checkout_id, excluded.checkout_id),
       store_id = case when k.checkout_id is null then excluded.store_id else k.store_id end,
       disposition = case
         when k.checkout_id is null then case when excluded.checkout_id is null then 'unmatched' else 'overpaid' end
         when k.disposition = 'exact' and k.orphaned_at is not null and exists (select 1 from credits o
           where o.checkout_id = k.checkout_id and o.disposition = 'exact' and o.orphaned_at is null) then 'overpaid'
         else k.disposition end
     where (k.orphaned_at is not null or (k.witnessed_at is null and $6) or k.position <> excluded.position
         or (k.checkout_id is null and excluded.checkout_id is not null))
       and k.transaction_hash = excluded.transaction_hash and k.asset = excluded.asset and k.payer = excluded.payer
       and k.nonce is not distinct from excluded.nonce and k.pay_to = excluded.pay_to and k.amount = excluded.amount
     returning checkout_id`,
    [network, input, block.hash, block.number, block.time, isWitnessed],
  )
  if (isAnyLeft) await numberLeftOut(tx, network, block.hash)
  return rows.flatMap(({ checkout_id }) => checkout_id ?? [])
}

/** Locks those of the checkouts that wait for a payment, and returns them. */
export async function lockWaiting(tx: Transaction, checkoutIds: readonly string[]): Promise<Set<string>> {
  const rows = await tx.query<{ id: string }>(
    `select id from checkouts where id = any($1) and status = 'PROCESSING' order by id for no key update`,
    [checkoutIds],
  )
  return new Set(rows.map(({ id }) => id))
}

/** SQL: the credits of the transfer `i`, live or orphaned ones: these have different indexes. */
function creditsOfTransfer(liveness: string): string {
  return `select * from credits where network = $1 and asset = i.asset and payer = i.payer and nonce = i.nonce
      and ${liveness}
    union all
    select * from credits where network = $1 and transaction_hash = i.transaction_hash and asset = i.asset
      and payer = i.payer and pay_to = i.pay_to and amount = i.amount and position = i.position
      and nonce is null and i.nonce is null and ${liveness}`
}

/**
 * Orphans the credits of blocks that left the chain. Those that too few providers have reported leave their places too:
 * should the block come back, what is told of it then decides. Returns the checkouts affected.
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
 * Money in an asset that belongs to no checkout and about which nobody has decided. Counted up to `max` payments. What
 * a refund moved is nobody's to decide, unless it went to another store's wallet.
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

/**
 * Reverses the orphaned credits of authorizations that have died since: the money went back. Returns their checkouts.
 */
export async function reverseCredits(
  tx: Transaction,
  network: string,
  dead: readonly Key[],
): Promise<string[]> {
  const rows = await tx.query<{ checkout_id: string | null }>(
    `update credits k set ${reversal}
     from json_to_recordset($2) as i (asset text, payer text, nonce text)
     where k.network = $1 and k.asset = i.asset and k.payer = i.payer and k.nonce = i.nonce
       and k.orphaned_at is not null and k.reversed_at is null
     returning k.checkout_id`,
    [network, JSON.stringify(dead)],
  )
  return rows.flatMap(({ checkout_id }) => checkout_id ?? [])
}

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

export async function writeAnnouncements(tx: Transaction, told: readonly Announcement[]): Promise<void> {
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
    [JSON.stringify(told.map(({ key, ...row }) => ({ ...parseKey(key), ...row })))],
  )
}

function parseKey(key: string): { network: string; block_hash: string; log_index: number } {
  const [network = '', block_hash = '', log_index = ''] = key.split(' ')
  return { network, block_hash, log_index: Number.parseInt(log_index, 10) }
}
