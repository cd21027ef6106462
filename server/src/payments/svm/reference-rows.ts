import type { Database, Transaction } from '../../database/db.ts'
import type { Wanted } from '../rail.ts'

/** SQL for transfers that are identified by the reference they carry. */

/** Gives a checkout a reference. Does nothing if it has one or can't be paid, or if the chain is not being followed. */
export async function insertReference(
  db: Database,
  { checkoutId, network, asset, payTo, price }: Wanted,
  reference: string,
  headAgeSecondsMax: number,
): Promise<boolean> {
  const rows = await db.query(
    `with locked as (
       select id from checkouts where id = $1 and status = 'OPEN' and expires_at > clock() for no key update
     ), made as (
       insert into reserved_amounts (checkout_id, network, asset, pay_to, amount, after_block, reserved_at, reference)
       select locked.id, $2, $3, $4, $5, f.head_number, clock(), $6 from locked, followers f
       where f.network = $2 and f.head_seen_at > clock() - make_interval(secs => $7)
       on conflict do nothing
       returning checkout_id
     )
     update checkouts c set page_version = c.page_version + 1 from made where c.id = made.checkout_id returning c.id`,
    [checkoutId, network, asset, payTo, price.toString(), reference, headAgeSecondsMax],
  )
  return rows.length > 0
}

export type Awaited = {
  readonly checkoutId: string
  readonly storeId: string
  readonly asset: string
  readonly payTo: string
  readonly reference: string
}

/**
 * References that are due for a lookup, least recently looked up first. Each is looked up often at first, then less and
 * less often, until its amount is freed. While its checkout can be paid, the interval is at most `secondsMax`.
 */
export async function listAwaited(
  db: Database,
  network: string,
  pace: { readonly ageShare: number; readonly secondsMin: number; readonly secondsMax: number },
  limit: number,
): Promise<Awaited[]> {
  return await db.query<Awaited>(
    `update reserved_amounts r set looked_at = clock()
     from (select checkout_id, network, asset from reserved_amounts
           where network = $1 and reference is not null and freed_at is null
             and (looked_at is null or looked_at <= clock() - least(greatest((clock() - reserved_at) / $2::integer,
               make_interval(secs => $3)), case when cools_until is null then make_interval(secs => $4) end))
           order by looked_at nulls first limit $5 for update skip locked) due, checkouts c
     where r.checkout_id = due.checkout_id and r.network = due.network and r.asset = due.asset and c.id = r.checkout_id
     returning r.checkout_id as "checkoutId", c.store_id as "storeId", r.asset, r.pay_to as "payTo", r.reference`,
    [network, pace.ageShare, pace.secondsMin, pace.secondsMax, limit],
  )
}

/** Which of these transactions are neither credited nor sent by us. */
export async function listUnknown(
  db: Database,
  network: string,
  hashes: readonly string[],
): Promise<string[]> {
  const rows = await db.query<{ hash: string }>(
    `select h.hash from unnest($2::text[]) as h (hash)
     where not exists (select 1 from credits k where k.network = $1 and k.transaction_hash = h.hash
         and k.orphaned_at is null)
       and not exists (select 1 from broadcasts b where b.network = $1 and b.hash = h.hash)`,
    [network, hashes],
  )
  return rows.map(({ hash }) => hash)
}

/** A transfer by reference, and where it is or was included. */
type Placed = { readonly place: string; readonly hash: string; readonly slot: number }

/** Credited transfers that are not final yet. */
export async function listUnsettled(db: Database, network: string, limit: number): Promise<Placed[]> {
  return await db.query<Placed>(
    `select k.block_hash as place, k.transaction_hash as hash, k.block_number::float8 as slot from credits k
     where k.network = $1 and k.nonce is null and k.orphaned_at is null and k.finalized_at is null
     order by k.block_number limit $2`,
    [network, limit],
  )
}

/** Transfers that were orphaned at least this long ago and are not back on the chain. */
export async function listOrphanedReferenceTransfers(
  db: Database,
  network: string,
  minutes: number,
  limit: number,
): Promise<Placed[]> {
  return await db.query<Placed>(
    `select k.block_hash as place, k.transaction_hash as hash, k.block_number::float8 as slot from credits k
     where k.network = $1 and k.nonce is null and k.reversed_at is null
       and k.orphaned_at <= clock() - make_interval(mins => $2)
       and not exists (select 1 from credits o where o.payment_id = k.payment_id and o.orphaned_at is null)
     order by k.orphaned_at limit $3`,
    [network, minutes, limit],
  )
}

/** Gives these transfers up. Returns their checkouts. */
export async function reverseReferenceTransfers(
  tx: Transaction,
  network: string,
  places: readonly string[],
): Promise<string[]> {
  const rows = await tx.query<{ checkout_id: string | null }>(
    `update credits set reversed_at = clock()
     where network = $1 and block_hash = any($2) and orphaned_at is not null and reversed_at is null
     returning checkout_id`,
    [network, places],
  )
  return rows.flatMap(({ checkout_id }) => checkout_id ?? [])
}
