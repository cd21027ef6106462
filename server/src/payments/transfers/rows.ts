import type { Hex } from '../../chains/hex.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { reversal, type SeenPlain } from '../credits/rows.ts'
import type { Wanted } from '../rail.ts'

/** SQL for plain transfers: amounts reserved for checkouts, and transfers matched by amount. */

export type HeldMax = { readonly recent: number; readonly recentMinutes: number; readonly all: number }

/**
 * The held amounts near a price: all of them, and those that were recently reserved for checkouts of the same store that
 * can still be paid. $2 to $5 are network, asset, address and price, $6 is the range, $7 how many minutes are recent;
 * `store` is the store's id.
 */
const heldSql = (store: string) => `select count(*)::integer as held,
    count(*) filter (where o.store_id = ${store} and o.status in ('OPEN', 'PROCESSING') and o.expires_at > clock()
      and r.reserved_at > clock() - make_interval(mins => $7))::integer as recent
  from reserved_amounts r join checkouts o on o.id = r.checkout_id
  where r.network = $2 and r.asset = $3 and r.pay_to = $4 and r.freed_at is null
    and r.amount > $5::numeric and r.amount <= $5::numeric + $6::numeric`

/**
 * Reserves the first of these amounts that nobody holds, unless the checkout already has one or cannot be paid, too
 * many amounts are held nearby, or the chain is not being followed. The unique index settles races. True if this call
 * reserved one.
 */
export async function insertReserved(
  db: Database,
  { checkoutId, network, asset, payTo, price }: Wanted,
  suffixes: readonly bigint[],
  limits: { range: bigint; heldMax: HeldMax; headAgeSecondsMax: number },
): Promise<boolean> {
  const rows = await db.query(
    `with locked as (
       select id, store_id from checkouts
       where id = $1 and status = 'OPEN' and expires_at > clock() for no key update
     ), chosen as (
       select locked.id, $5::numeric + s.suffix as amount, f.head_number
       from locked, lateral (${heldSql('locked.store_id')}) as near, followers f,
         unnest($8::numeric[]) with ordinality as s (suffix, place)
       where f.network = $2 and f.head_seen_at > clock() - make_interval(secs => $9)
         and near.recent < $10 and near.held < $11
         and not exists (select 1 from reserved_amounts r where r.network = $2 and r.asset = $3 and r.pay_to = $4
           and r.freed_at is null and r.amount = $5::numeric + s.suffix)
       order by s.place limit 1
     ), made as (
       insert into reserved_amounts (checkout_id, network, asset, pay_to, amount, after_block, reserved_at)
       select id, $2, $3, $4, amount, head_number, clock() from chosen
       on conflict do nothing
       returning checkout_id
     )
     update checkouts c set page_version = c.page_version + 1 from made where c.id = made.checkout_id returning c.id`,
    [
      checkoutId,
      network,
      asset,
      payTo,
      price.toString(),
      limits.range.toString(),
      limits.heldMax.recentMinutes,
      suffixes.map(String),
      limits.headAgeSecondsMax,
      limits.heldMax.recent,
      limits.heldMax.all,
    ],
  )
  return rows.length > 0
}

/** Why nothing could be reserved, or that something already is. */
export async function readReservable(
  db: Database,
  { checkoutId, network, asset, payTo, price }: Wanted,
  limits: { range: bigint; heldMax: HeldMax; headAgeSecondsMax: number },
): Promise<{
  isReserved: boolean
  isPayable: boolean
  isProcessing: boolean
  isFollowed: boolean
  held: number
  recent: number
}> {
  const [row] = await db.query<{
    is_reserved: boolean
    is_payable: boolean
    is_processing: boolean
    is_followed: boolean
    held: number
    recent: number
  }>(
    `select exists (select 1 from reserved_amounts r
         where r.checkout_id = c.id and r.network = $2 and r.asset = $3) as is_reserved,
       c.status = 'OPEN' and c.expires_at > clock() as is_payable, c.status = 'PROCESSING' as is_processing,
       exists (select 1 from followers f where f.network = $2
         and f.head_seen_at > clock() - make_interval(secs => $8)) as is_followed, near.held, near.recent
     from checkouts c, lateral (${heldSql('c.store_id')}) as near where c.id = $1`,
    [
      checkoutId,
      network,
      asset,
      payTo,
      price.toString(),
      limits.range.toString(),
      limits.heldMax.recentMinutes,
      limits.headAgeSecondsMax,
    ],
  )
  return {
    isReserved: row?.is_reserved ?? false,
    isPayable: row?.is_payable ?? false,
    isProcessing: row?.is_processing ?? false,
    isFollowed: row?.is_followed ?? false,
    held: row?.held ?? 0,
    recent: row?.recent ?? 0,
  }
}

/** Frees amounts near a price before they have cooled down, those of the checkouts that ended first. */
export async function freeCooling(
  db: Database,
  { network, asset, payTo, price }: Wanted,
  range: bigint,
  limit: number,
): Promise<number> {
  const rows = await db.query(
    `update reserved_amounts r set freed_at = clock()
     from (select e.checkout_id from reserved_amounts e
           join checkouts c on c.id = e.checkout_id and c.status not in ('OPEN', 'PROCESSING')
           where e.network = $1 and e.asset = $2 and e.pay_to = $3 and e.freed_at is null and e.cools_until is not null
             and e.amount > $4::numeric and e.amount <= $4::numeric + $5::numeric
           order by e.cools_until limit $6) ended
     where r.checkout_id = ended.checkout_id and r.network = $1 and r.asset = $2
     returning 1 as one`,
    [network, asset, payTo, price.toString(), range.toString(), limit],
  )
  return rows.length
}

/**
 * Amounts of checkouts that have ended cool down and are then freed. If a checkout reopens because the chain removed
 * its payment, its amount cools down again when it ends.
 */
export async function freeReserved(db: Database, coolingHours: number): Promise<number> {
  const rows = await db.query(
    `update reserved_amounts r set
       cools_until = case when c.status in ('OPEN', 'PROCESSING') then null
         else coalesce(r.cools_until, clock() + make_interval(hours => $1)) end,
       freed_at = case when c.status not in ('OPEN', 'PROCESSING') and r.cools_until <= clock() then clock() end
     from checkouts c
     where c.id = r.checkout_id and r.freed_at is null
       and case when c.status in ('OPEN', 'PROCESSING') then r.cools_until is not null
         else r.cools_until is null or r.cools_until <= clock() end
     returning 1 as one`,
    [coolingHours],
  )
  return rows.length
}

/** A plain transfer that concerns us: of a reserved amount, or at least to one of our wallets. */
export type Match = {
  readonly seen: SeenPlain
  readonly checkoutId: string | null
  /** The checkout's store. */
  readonly storeId: string | null
}

/**
 * Assigns safe transfers by authorization that nobody has claimed to the checkouts that their amounts are reserved for,
 * and claims them: anyone who presents the authorization later finds it taken. Bound ones are left to the checkouts
 * that they name. Returns the checkouts affected.
 */
export async function claimByAmount(
  tx: Transaction,
  network: string,
  boundPattern: string,
): Promise<string[]> {
  const rows = await tx.query<{ checkout_id: string }>(
    `with found as (
       select k.network, k.asset, k.payer, k.nonce, k.pay_to, k.amount, r.checkout_id
       from credits k join reserved_amounts r on r.network = k.network and r.asset = k.asset and r.pay_to = k.pay_to
         and r.amount = k.amount and r.freed_at is null and r.after_block < k.block_number
       where k.network = $1 and k.orphaned_at is null and k.checkout_id is null and k.announced is null
         and k.safe_at is not null and k.dismissed_at is null and k.nonce is not null and k.nonce not like $2
     ), locked as (
       select id, store_id from checkouts where id in (select checkout_id from found) order by id for no key update
     ), claimed as (
       insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
         valid_after, valid_before, signature, reason, claimed_at, resolved_at)
       select f.network, f.asset, f.payer, f.nonce, l.id, l.store_id, 'rejected', f.pay_to, f.amount,
         0, 0, '', 'paid_by_amount', clock(), clock()
       from found f join locked l on l.id = f.checkout_id
       on conflict do nothing
       returning network, asset, payer, nonce, checkout_id, store_id
     )
     update credits k set checkout_id = a.checkout_id, store_id = a.store_id, disposition = 'overpaid'
     from claimed a where k.network = a.network and k.asset = a.asset and k.payer = a.payer and k.nonce = a.nonce
       and k.orphaned_at is null
     returning k.checkout_id`,
    [network, boundPattern],
  )
  return rows.map(({ checkout_id }) => checkout_id)
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
  const rows = await db.query<{
    transaction_hash: Hex
    sender: Hex | null
    sender_nonce: string | null
    is_old: boolean
  }>(
    `select k.transaction_hash, k.sender, k.sender_nonce,
       k.orphaned_at <= clock() - make_interval(mins => $2) as is_old
     from credits k
     where k.network = $1 and k.orphaned_at is not null and k.reversed_at is null and k.nonce is null
       and not exists (select 1 from credits o where o.network = k.network
         and o.transaction_hash = k.transaction_hash and o.asset = k.asset and o.position = k.position
         and o.orphaned_at is null)
     order by k.orphaned_at limit $3`,
    [network, oldMinutes, limit],
  )
  return rows.map((row) => ({
    transactionHash: row.transaction_hash,
    sender: row.sender,
    senderNonce: row.sender_nonce === null ? null : Number.parseInt(row.sender_nonce, 10),
    isOld: row.is_old,
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

/** Accepts reserved amounts from the first block on, after their chain was replaced by another with the same id. */
export async function resetReserved(db: Database, network: string): Promise<void> {
  await db.query('update reserved_amounts set after_block = 0 where network = $1', [network])
}
