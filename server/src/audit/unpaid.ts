import type { Database } from '../database/db.ts'
import { firstIdAt } from '../ids.ts'
import * as rows from './rows.ts'

/**
 * Checkouts that say they are paid and are not. `work` computes that, so a `work` that was taken can write anything
 * here; `serve` and the console wrote what the checkout asks for, and what its store accepted, and `work` can't change
 * that.
 */

/** How far back a checkout is looked at again every night: goods of older ones have long been sent. */
const lookedBackDays = 35
const perNightMax = 1_000

const dayMs = 86_400_000

/**
 * SQL: whether the checkout `c` is COMPLETED without a payment of what it asks for, or one that its store accepted for it
 * at a wallet of its own.
 * Nobody makes an address that differs from another in upper and lower case alone.
 */
const isUnpaid = `c.status = 'COMPLETED' and not exists (select 1 from credits k
  where k.checkout_id = c.id and k.orphaned_at is null
    -- Only test stores have simulated payments: a trigger sees to that.
    and (k.network = 'farthing:simulated' or exists (select 1 from audit_accepts a join wallets w on w.store_id = a.store_id
        where a.payment_id = k.payment_id and a.checkout_id = c.id and a.store_id = c.store_id
          and lower(w.pay_to) = lower(k.pay_to))
      or exists (select 1 from json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text)
        where o.network = k.network and o.amount <= k.amount
          and lower(o.asset) = lower(k.asset) and lower(o."payTo") = lower(k.pay_to))))`

/** Every night: those of the last weeks. Returns how many findings are new. */
export async function findUnpaidSince(db: Database, cell: string, now: Date): Promise<number> {
  const since = firstIdAt('ch', cell, new Date(now.getTime() - lookedBackDays * dayMs))
  const unpaid = await db.query<Unpaid>(
    `select ${columns} from checkouts c where c.id >= $1 and ${isUnpaid} order by c.id desc limit $2`,
    [since, perNightMax],
  )
  await resolvePaid(db)
  return await note(db, unpaid)
}

/** The same among these, of any age: the books about them have changed. */
export async function findUnpaid(db: Database, checkoutIds: readonly string[]): Promise<number> {
  if (checkoutIds.length === 0) return 0
  const unpaid = await db.query<Unpaid>(
    `select ${columns} from checkouts c where c.id = any($1) and ${isUnpaid} order by c.id`,
    [checkoutIds],
  )
  return await note(db, unpaid)
}

type Unpaid = { readonly checkoutId: string; readonly storeId: string; readonly day: string }

const columns = `c.id as "checkoutId", c.store_id as "storeId", (c.created_at at time zone 'UTC')::date::text as day`

async function note(db: Database, unpaid: readonly Unpaid[]): Promise<number> {
  const difference = {
    kind: 'unpaid',
    wallet: '',
    asset: '',
    transaction: '',
    position: 0,
    amount: 0n,
  } as const
  return await rows.writeFindings(
    db,
    { caip2: '', mode: '' },
    unpaid.map((one) => ({ ...difference, ...one })),
  )
}

/** Ends the findings about checkouts that have a payment now, or are not called paid any more. */
async function resolvePaid(db: Database): Promise<void> {
  await db.query(
    `update audit_findings f set resolved_at = clock()
     where f.kind = 'unpaid' and f.resolved_at is null
       and not exists (select 1 from checkouts c where c.id = f.checkout_id and ${isUnpaid})`,
  )
}
