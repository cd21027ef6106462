import type { Database, Transaction } from '../database/db.ts'
import type { CheckoutId } from '../ids.ts'
import { type CreditRow, type RawCredit, toCreditRow } from '../payments/credits/credit.ts'
import { isFinalByAnnouncement } from '../payments/credits/finality.ts'
import { authorizationOf } from '../payments/rows.ts'
import type { Checkout } from './checkout.ts'
import { type CheckoutRow, toCheckout } from './rows.ts'

/** A credit, and what is new about it since the transaction that reads it began. */
export type FactCredit = CreditRow & {
  readonly isNew: boolean
  readonly isNewlySafe: boolean
  /** When its authorization was claimed; null if it was not paid by a claim. */
  readonly claimedAt: Date | null
  /** Whether a refund of it counts. */
  readonly isRefunded: boolean
  /** With its transaction, what the chain knows it by: its nonce, or null and its position among equal transfers. */
  readonly nonce: string | null
  readonly position: number
}

/** The facts that decide the status of checkouts. */
export type StatusFacts = {
  readonly credits: readonly FactCredit[]
  readonly unresolved: ReadonlySet<string>
  /** For checkouts with reserved amounts: the time up to which their chains were read. */
  readonly readUntil: ReadonlyMap<string, Date>
}

/**
 * In order of id. Fails if one was deleted since the caller learned of it: then its transaction, which may have written
 * about it, is rolled back, and finds nothing about it when it runs again.
 */
export async function lockCheckouts(tx: Transaction, ids: readonly string[]): Promise<Checkout[]> {
  const rows = await tx.query<CheckoutRow>(
    'select * from checkouts where id = any($1) order by id for no key update',
    [ids],
  )
  if (rows.length < new Set(ids).size) throw new Error('A checkout was deleted meanwhile; this runs again.')
  return rows.map(toCheckout)
}

/**
 * Call this after locking the checkouts: everyone who changes these facts holds that lock too. On a chain that is read
 * block by block, a credit is final from the moment its block is; the fact is written with its announcement.
 */
export async function readFacts(tx: Transaction, ids: readonly string[]): Promise<StatusFacts> {
  const credits = await tx.query<
    RawCredit & {
      is_new: boolean
      is_newly_safe: boolean
      claimed_at: Date | null
      is_refunded: boolean
      nonce: string | null
      position: number
    }
  >(
    `select k.*, k.orphaned_at is not null and exists (select 1 from credits o where o.payment_id = k.payment_id
       and o.checkout_id = k.checkout_id and o.orphaned_at is null offset 0) as is_included_again,
       a.claimed_at is not null as is_claimed, a.claimed_at,
       coalesce(k.finalized_at, case when ${isFinalByAnnouncement} and k.block_number <= f.finalized_number
         and f.witnesses is not null then clock() end) as finalized_at,
       k.included_at = clock() as is_new, coalesce(k.safe_at = clock(), false) as is_newly_safe,
       exists (select 1 from reserved_amounts r where r.checkout_id = k.checkout_id and r.network = k.network
         and r.asset = k.asset and r.pay_to = k.pay_to and r.amount = k.amount) as is_reserved,
       exists (select 1 from refund_totals t where t.payment_id = k.payment_id and t.reserved > 0) as is_refunded
     from credits k
     left join followers f on f.network = k.network
     left join ${authorizationOf('k')} on a.checkout_id = k.checkout_id and a.state in ('claimed', 'sent')
     where k.checkout_id = any($1)`,
    [ids],
  )
  const unresolved = await tx.query<{ checkout_id: string }>(
    `select a.checkout_id from authorizations a
     where a.checkout_id = any($1) and a.state in ('claimed', 'sent')
       and not exists (select 1 from credits k where k.network = a.network and k.asset = a.asset
         and k.payer = a.payer and k.nonce = a.nonce and k.orphaned_at is null and k.checkout_id = a.checkout_id
         offset 0)
     union
     select k.checkout_id from credits k
     where k.checkout_id = any($1) and k.disposition = 'exact' and k.orphaned_at is not null and k.reversed_at is null
       and (k.nonce is null or exists (select 1 from authorizations a where a.network = k.network and a.asset = k.asset
         and a.payer = k.payer and a.nonce = k.nonce and a.checkout_id = k.checkout_id
         and a.state in ('rejected', 'dead')))
       and not exists (select 1 from credits o where o.payment_id = k.payment_id
         and o.checkout_id = k.checkout_id and o.orphaned_at is null)`,
    [ids],
  )
  const reserved = await tx.query<{ checkout_id: string; read_until: Date }>(
    `select r.checkout_id, min(coalesce(f.head_time, 'epoch')) as read_until
     from reserved_amounts r left join followers f on f.network = r.network
     where r.checkout_id = any($1) group by r.checkout_id`,
    [ids],
  )
  return {
    readUntil: new Map(reserved.map(({ checkout_id, read_until }) => [checkout_id, read_until])),
    unresolved: new Set(unresolved.map(({ checkout_id }) => checkout_id)),
    credits: credits.map((row) => ({
      ...toCreditRow(row),
      isNew: row.is_new,
      isNewlySafe: row.is_newly_safe,
      claimedAt: row.claimed_at,
      isRefunded: row.is_refunded,
      nonce: row.nonce,
      position: row.position,
    })),
  }
}

/** Those of the checkouts that their store has canceled at some time: their log says so. */
export async function listCanceled(tx: Transaction, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await tx.query<{ checkout_id: string }>(
    "select distinct checkout_id from events where checkout_id = any($1) and type = 'checkout.canceled'",
    [ids],
  )
  return new Set(rows.map(({ checkout_id }) => checkout_id))
}

export async function listProcessing(db: Database, after: string, limit: number): Promise<CheckoutId[]> {
  const rows = await db.query<{ id: CheckoutId }>(
    "select id from checkouts where status = 'PROCESSING' and id > $1 order by id limit $2",
    [after, limit],
  )
  return rows.map(({ id }) => id)
}
