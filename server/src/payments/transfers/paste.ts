import { setTimeout as wait } from 'node:timers/promises'
import type { Hex } from '../../chains/hex.ts'
import { lockFollower } from '../../chains/rows.ts'
import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { ownersOf } from '../credits/rows.ts'
import type { Rails } from '../rail.ts'

export const pasteLimits = {
  /** A buyer pays once, perhaps twice, and may mistype. */
  perCheckoutMax: 10,
  /** Limits how often nodes are asked about made-up hashes. A real one is found quickly. */
  perStoreMax: 100,
  /** A buyer who sees "not found" may submit the form again at once, but the answer would be the same. */
  againAfterSeconds: 60,
  /** After this time a transaction is given up, because it is unlikely to be included any more. */
  patienceMinutes: 30,
}
/** Most transactions are already known or found at once, so the buyer gets an immediate answer. */
const patienceMs = 2_500
const lookEveryMs = 100

/**
 * Queues a lookup of a transaction that a buyer pasted, and returns what is known within a few seconds. Null if the
 * text is not a transaction hash.
 */
export async function pasteTransaction(
  ctx: Context,
  rails: Rails,
  checkoutId: string,
  networks: readonly string[],
  text: string,
): Promise<PasteOutcome | null> {
  const parsed = new Map<string, Hex>()
  for (const rail of rails.values()) {
    const hash = rail.parseTransactionHash?.(text)
    if (hash) parsed.set(rail.network.caip2, hash)
  }
  const [hash] = parsed.values()
  if (!hash) return null
  const known = networks.filter((network) => parsed.has(network))
  if (!(await insertPasted(ctx.db, checkoutId, known, hash, pasteLimits))) return 'not_found'
  ctx.db.wakeUps.send('claims')
  for (let waitedMs = 0; waitedMs < patienceMs; waitedMs += lookEveryMs) {
    const outcome = await readPasted(ctx.db, checkoutId, hash)
    if (outcome !== 'looking') return outcome
    await wait(lookEveryMs)
  }
  return 'looking'
}

/** SQL for transactions that buyers paste as theirs. */
export type PasteOutcome = 'looking' | 'applied' | 'hinted' | 'not_found'

/**
 * Queues a transaction to be looked up for a checkout on each of its networks. False if too many were pasted for it.
 * One that was not found is looked up again only if the last lookup was a while ago.
 *
 * If too many lookups of the store are open, some are put off: `looked_at` is set to the end of `patienceMinutes`, when
 * the last lookup is due. They stay `looking`, because strangers can paste made-up hashes, and that must not make
 * another buyer's page ask for a second payment. The newest of each checkout are kept first, then the newest of all, so
 * that a few checkouts with many hashes delay only their own.
 */
export async function insertPasted(
  db: Database,
  checkoutId: string,
  networks: readonly string[],
  hash: Hex,
  limits: {
    readonly perCheckoutMax: number
    readonly perStoreMax: number
    readonly againAfterSeconds: number
    readonly patienceMinutes: number
  },
): Promise<boolean> {
  const rows = await db.query(
    `with locked as (
       select id, store_id from checkouts where id = $1 for no key update
     ), known as (
       select transaction_hash from pasted_transactions where checkout_id = $1
     ), made as (
       insert into pasted_transactions (checkout_id, network, transaction_hash, pasted_at)
       select locked.id, n.network, $3, clock() from locked, unnest($2::text[]) as n (network)
       where (select count(distinct transaction_hash) from known) < $4 or $3 in (select transaction_hash from known)
       on conflict (checkout_id, network, transaction_hash) do update set outcome = 'looking', pasted_at = clock()
         where pasted_transactions.outcome = 'not_found'
           and coalesce(pasted_transactions.looked_at, '-infinity') <= clock() - make_interval(secs => $6)
       returning 1
     ), surplus as (
       select l.checkout_id, l.network, l.transaction_hash from pasted_transactions l
       join checkouts c on c.id = l.checkout_id join locked on locked.store_id = c.store_id
       where l.outcome = 'looking' and (l.looked_at is null or l.looked_at <= clock())
       order by dense_rank() over (partition by l.checkout_id order by l.pasted_at desc), l.pasted_at desc offset $5
     ), put_off as (
       update pasted_transactions p set looked_at = p.pasted_at + make_interval(mins => $7)
       from (select checkout_id, network, transaction_hash from pasted_transactions
             where (checkout_id, network, transaction_hash) in (select * from surplus) and outcome = 'looking'
             for update skip locked) l
       where p.checkout_id = l.checkout_id and p.network = l.network and p.transaction_hash = l.transaction_hash
     ), shown as (
       update checkouts set page_version = page_version + 1 where id = $1 and exists (select 1 from made)
     )
     select 1 as one from locked
     where (select count(distinct transaction_hash) from known) < $4 or $3 in (select transaction_hash from known)`,
    [
      checkoutId,
      networks,
      hash,
      limits.perCheckoutMax,
      limits.perStoreMax,
      limits.againAfterSeconds,
      limits.patienceMinutes,
    ],
  )
  return rows.length > 0
}

/** The best outcome among its networks. */
export async function readPasted(db: Database, checkoutId: string, hash: Hex): Promise<PasteOutcome> {
  const [row] = await db.query<{ outcome: PasteOutcome }>(
    `select outcome from pasted_transactions where checkout_id = $1 and transaction_hash = $2
     order by array_position(array['applied', 'hinted', 'looking', 'not_found'], outcome) limit 1`,
    [checkoutId, hash],
  )
  return row?.outcome ?? 'not_found'
}

export type Pasted = { readonly checkoutId: string; readonly hash: Hex; readonly isOld: boolean }

/**
 * Pasted transactions that are due for a lookup, least recently looked up first. The interval between lookups equals
 * the time since the first one, at least `againSeconds`, and the last lookup is at the end of `patienceMinutes`: about
 * a dozen in total.
 */
export async function listPasted(
  db: Database,
  network: string,
  patienceMinutes: number,
  againSeconds: number,
  limit: number,
): Promise<Pasted[]> {
  return await db.query<Pasted>(
    `update pasted_transactions p set looked_at = clock()
     from (select checkout_id, network, transaction_hash from pasted_transactions
           where network = $1 and outcome = 'looking'
             and (looked_at is null or looked_at + greatest(make_interval(secs => $3),
               least(looked_at - pasted_at, pasted_at + make_interval(mins => $2) - looked_at)) <= clock())
           order by looked_at nulls first limit $4 for update skip locked) due
     where p.checkout_id = due.checkout_id and p.network = due.network and p.transaction_hash = due.transaction_hash
     returning p.checkout_id as "checkoutId", p.transaction_hash as hash,
       p.pasted_at <= clock() - make_interval(mins => $2) as "isOld"`,
    [network, patienceMinutes, againSeconds, limit],
  )
}

/** More people than this would not paste the same transaction by mistake. */
const hintsPerPaymentMax = 10

/** Writes the outcome if it can be decided now. Returns whether it could be. */
export async function resolvePasted(ctx: Context, network: string, pasted: Pasted): Promise<boolean> {
  return await ctx.db.transaction(async (tx) => {
    await lockFollower(tx, network)
    return await resolvePastedIn(tx, network, pasted)
  })
}

/** The same in a transaction that holds the network. */
export async function resolvePastedIn(tx: Transaction, network: string, pasted: Pasted): Promise<boolean> {
  const outcome = await decidePasted(tx, network, pasted, hintsPerPaymentMax)
  if (outcome !== null) await writePasted(tx, network, pasted, outcome)
  return outcome !== null
}

/**
 * Decides what a transaction means for the checkout whose buyer pasted it, after it was read. If it paid this checkout,
 * it is applied. If it paid no checkout, but reached an address that this one offered, after this one was created, it
 * becomes a hint for the store, which is notified once more. Otherwise it counts as not found. Null if it was not read
 * yet.
 */
async function decidePasted(
  tx: Transaction,
  network: string,
  { checkoutId, hash }: Pasted,
  hintsPerPaymentMax: number,
): Promise<PasteOutcome | null> {
  const [row] = await tx.query<{ seen: number; applied: number; hinted: number }>(
    `with seen as (
       select k.* from credits k where k.network = $1 and k.transaction_hash = $2 and k.orphaned_at is null
     ), fitting as (
       select k.payment_id, k.amount, coalesce(r.amount, o.amount) as due, k.first_seen_block_time > c.expires_at as is_late
       from seen k join checkouts c on c.id = $3
         and exists (select 1 from stores s cross join lateral ${ownersOf('s.mode')} w
           where s.id = c.store_id and w.store_id = s.id)
         and k.first_seen_block_time >= c.created_at - interval '1 minute'
       cross join json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text)
       left join reserved_amounts r on r.checkout_id = c.id and r.network = k.network and r.asset = k.asset
       where k.checkout_id is null and k.dismissed_at is null and o.network = k.network
         and lower(o.asset) = k.asset and lower(o."payTo") = k.pay_to
         and (select count(*) from payment_hints h join checkouts b on b.id = h.checkout_id
           where h.payment_id = k.payment_id and b.store_id = c.store_id) < $4
     ), hinted as (
       insert into payment_hints (payment_id, checkout_id, disposition, created_at)
       select payment_id, $3, case when is_late then 'late' when amount < due then 'underpaid'
         when amount > due then 'overpaid' else 'unmatched' end, clock()
       from fitting on conflict do nothing
       returning payment_id
     ), told as (
       update credits k set announced = null from hinted
       where k.network = $1 and k.transaction_hash = $2 and k.payment_id = hinted.payment_id and k.orphaned_at is null
     ), shown as (
       update checkouts set page_version = page_version + 1 where id = $3 and exists (select 1 from hinted)
     )
     select (select count(*)::integer from seen) as seen,
       (select count(*)::integer from seen where checkout_id = $3) as applied,
       (select count(*)::integer from fitting) as hinted`,
    [network, hash, checkoutId, hintsPerPaymentMax],
  )
  if (!row || row.seen === 0) return null
  return row.applied > 0 ? 'applied' : row.hinted > 0 ? 'hinted' : 'not_found'
}

/** Locks the checkout before the pasted transaction, as `insertPasted` does, so that the two cannot deadlock. */
export async function writePasted(
  db: Database | Transaction,
  network: string,
  { checkoutId, hash }: Pasted,
  outcome: PasteOutcome,
): Promise<void> {
  await db.query(
    `with locked as (
       select id from checkouts where id = $1 for no key update
     ), written as (
       update pasted_transactions p set outcome = $4 from locked
       where p.checkout_id = locked.id and p.network = $2 and p.transaction_hash = $3
       returning 1
     )
     update checkouts set page_version = page_version + 1 where id = $1 and exists (select 1 from written)`,
    [checkoutId, network, hash, outcome],
  )
}
