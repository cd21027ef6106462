import type { Hex } from '../../chains/hex.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { mayMatchAt, modeOf } from '../credits/owner-rows.ts'
import { reversal, type SeenPlain } from '../credits/rows.ts'
import type { Wanted } from '../rail.ts'

/** SQL for plain transfers: amounts reserved for checkouts, and transfers matched by amount. */

type HeldMax = { readonly recent: number; readonly recentMinutes: number; readonly all: number }

/** How many of a store's open checkouts are looked at for their prices, newest first. */
const pricesMax = 5_000

/**
 * The amounts near a price that a store holds: all of them, and those that were recently reserved for checkouts that can
 * still be paid. What other stores with the same wallet hold does not count: they must not close a price. $2 to $5 are
 * network, asset, address and price, $6 is the range, $7 how many minutes are recent; `store` is the store's id.
 */
const heldSql = (store: string) => `select count(*)::integer as held,
    count(*) filter (where o.status in ('OPEN', 'PROCESSING') and o.expires_at > clock()
      and r.reserved_at > clock() - make_interval(mins => $7))::integer as recent
  from reserved_amounts r
  cross join lateral (select * from checkouts c where c.id = r.checkout_id offset 0) o
  where o.store_id = ${store} and r.network = $2 and r.asset = $3 and r.pay_to = $4 and r.freed_at is null
    and r.amount > $5::numeric and r.amount <= $5::numeric + $6::numeric`

/** Open prices near a price that are not whole cents. $2 and $5 are network and price, $6 is the range. */
const openPricesSql = (store: string) => `select p.amount::numeric as amount
  from (select c.options, c.price_currency, c.price_amount from checkouts c where c.store_id = ${store} and c.status = 'OPEN' order by c.id desc limit ${pricesMax}) c
  cross join lateral json_to_recordset(c.options) as p (network text, amount text)
  where (c.price_currency <> 'USD' or c.price_amount ~ '[.][0-9]{3}') and p.network = $2
    and p.amount::numeric > $5::numeric and p.amount::numeric <= $5::numeric + $6::numeric`

export type ReserveLimits = {
  readonly range: bigint
  /** A hundredth of a token: a multiple of it is what people send who do not look. */
  readonly cent: bigint
  readonly heldMax: HeldMax
  readonly headAgeSecondsMax: number
}

/**
 * Reserves the first of these amounts that nobody holds, unless the checkout already has one or cannot be paid, too
 * many amounts are held nearby, another store has proven the wallet, or the chain is not being followed. Amounts that
 * somebody may send for another order are left out: whole cents, and prices of the store's open checkouts. The unique
 * index settles races. True if this call reserved one.
 */
export async function insertReserved(
  db: Database,
  { checkoutId, network, asset, payTo, price }: Wanted,
  suffixes: readonly bigint[],
  limits: ReserveLimits,
): Promise<boolean> {
  const rows = await db.query(
    `with locked as (
       select id, store_id from checkouts
       where id = $1 and status = 'OPEN' and expires_at > clock() for no key update
     ), prices as materialized (
       select array(${openPricesSql('(select store_id from locked)')}) as amounts
     ), near as materialized (
       ${heldSql('(select store_id from locked)')}
     ), chosen as (
       select locked.id, $5::numeric + s.suffix as amount, f.head_number
       from locked, near, followers f,
         unnest($8::numeric[]) with ordinality as s (suffix, place)
       where f.network = $2 and f.head_seen_at > clock() - make_interval(secs => $9)
         and near.recent < $10 and near.held < $11 and mod($5::numeric + s.suffix, $12::numeric) <> 0
         and $5::numeric + s.suffix <> all ((select amounts from prices)::numeric[])
         and (select ${mayMatchAt('(select store_id from locked)', '$4', '$13')})
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
      limits.cent.toString(),
      modeOf(network),
    ],
  )
  return rows.length > 0
}

/** Why nothing could be reserved, or that something already is. */
export async function readReservable(
  db: Database,
  { checkoutId, network, asset, payTo, price }: Wanted,
  limits: Omit<ReserveLimits, 'cent'>,
): Promise<{
  isReserved: boolean
  mayMatch: boolean
  isPayable: boolean
  isProcessing: boolean
  isFollowed: boolean
  held: number
  recent: number
}> {
  const [row] = await db.query<{
    is_reserved: boolean
    may_match: boolean
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
         and f.head_seen_at > clock() - make_interval(secs => $8)) as is_followed, near.held, near.recent,
       ${mayMatchAt('c.store_id', '$4', '$9')} as may_match
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
      modeOf(network),
    ],
  )
  return {
    isReserved: row?.is_reserved ?? false,
    mayMatch: row?.may_match ?? false,
    isPayable: row?.is_payable ?? false,
    isProcessing: row?.is_processing ?? false,
    isFollowed: row?.is_followed ?? false,
    held: row?.held ?? 0,
    recent: row?.recent ?? 0,
  }
}

/** Frees amounts of the store near a price before they have cooled down, those of the checkouts that ended first. */
export async function freeCooling(
  db: Database,
  { checkoutId, network, asset, payTo, price }: Wanted,
  range: bigint,
  limit: number,
): Promise<number> {
  const rows = await db.query(
    `update reserved_amounts r set freed_at = clock()
     from (select e.checkout_id from reserved_amounts e
           cross join lateral (select * from checkouts c where c.id = e.checkout_id offset 0) c
           where c.status not in ('OPEN', 'PROCESSING')
             and c.store_id = (select a.store_id from checkouts a where a.id = $7) and e.network = $1 and e.asset = $2 and e.pay_to = $3 and e.freed_at is null and e.cools_until is not null
             and e.amount > $4::numeric and e.amount <= $4::numeric + $5::numeric
           order by e.cools_until limit $6) ended
     where r.checkout_id = ended.checkout_id and r.network = $1 and r.asset = $2
     returning 1 as one`,
    [network, asset, payTo, price.toString(), range.toString(), limit, checkoutId],
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
 * that they name. At a wallet that is also paid elsewhere, or that others have proven, such a transfer may have paid for
 * something else, so it only becomes a hint. Returns the checkouts affected.
 */
export async function claimByAmount(
  tx: Transaction,
  network: string,
  boundPattern: string,
): Promise<string[]> {
  const rows = await tx.query<{ checkout_id: string }>(
    `with found as (
       select k.network, k.asset, k.payer, k.nonce, k.pay_to, k.amount, k.payment_id, r.checkout_id,
         ${mayMatchAt('c.store_id', 'k.pay_to', '$3')} and not exists (select 1 from wallets w
           where w.store_id = c.store_id and w.pay_to = k.pay_to and w.shared_elsewhere) as is_payment
       from credits k join reserved_amounts r on r.network = k.network and r.asset = k.asset and r.pay_to = k.pay_to
         and r.amount = k.amount and r.freed_at is null and r.after_block < k.block_number
       join checkouts c on c.id = r.checkout_id
       where k.network = $1 and k.orphaned_at is null and k.checkout_id is null and k.announced is null
         and k.safe_at is not null and k.dismissed_at is null and k.nonce is not null and k.nonce not like $2
     ), hinted as (
       insert into payment_hints (payment_id, checkout_id, disposition, created_at)
       select payment_id, checkout_id, 'unmatched', clock() from found where not is_payment
       on conflict do nothing
     ), locked as (
       select id, store_id from checkouts where id in (select checkout_id from found where is_payment)
       order by id for no key update
     ), claimed as (
       insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
         valid_after, valid_before, signature, reason, claimed_at, resolved_at)
       select f.network, f.asset, f.payer, f.nonce, l.id, l.store_id, 'rejected', f.pay_to, f.amount,
         0, 0, '', 'paid_by_amount', clock(), clock()
       from found f join locked l on l.id = f.checkout_id
       where f.is_payment
       on conflict do nothing
       returning network, asset, payer, nonce, checkout_id, store_id
     )
     update credits k set checkout_id = a.checkout_id, store_id = a.store_id, disposition = 'overpaid'
     from claimed a where k.network = a.network and k.asset = a.asset and k.payer = a.payer and k.nonce = a.nonce
       and k.orphaned_at is null
     returning k.checkout_id`,
    [network, boundPattern, modeOf(network)],
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
