import { toStored } from '../chains/families.ts'
import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import { firstIdAt } from '../ids.ts'
import type { Audited } from './audited.ts'
import { toUnfounded } from './day.ts'
import type { Credited, Discrepancy } from './finding.ts'
import * as rows from './rows.ts'

/**
 * Checkouts that say they are paid, whatever wallet, network or day their payment names. `work` computes that, so a
 * `work` that was taken can write anything here; `serve` wrote when the checkout was made.
 */

/** How far back a checkout is looked at again every night: goods of older ones have long been sent. */
export const lookedBackDays = 35
/** A day may still be compared this long after it ended, because nodes were away. */
const behindDays = 3
/** Each costs a question to the nodes. */
const perNightMax = 1_000

const dayMs = 86_400_000

/** Returns how many findings are new. */
export async function findSuspects(ctx: Context, audited: readonly Audited[], now: Date): Promise<number> {
  const since = firstIdAt('ch', ctx.config.cell, new Date(now.getTime() - lookedBackDays * dayMs))
  let found = 0
  const unpaid = await listUnpaid(ctx.db, since)
  await resolvePaid(ctx.db)
  for (const { checkoutId, storeId, day } of unpaid) {
    const difference = {
      kind: 'unpaid',
      wallet: '',
      asset: '',
      transaction: '',
      position: 0,
      amount: 0n,
    } as const
    const here = { caip2: '', mode: '' }
    found += await rows.writeFindings(ctx.db, here, day, [{ ...difference, checkoutId, storeId }])
  }
  for (const credit of await listUncompared(ctx.db, since, now)) {
    // What no audit can look up is no suspicion.
    if (credit.network.startsWith('solana:')) continue
    const on = audited.find(({ network }) => network.caip2 === credit.network)
    if (on && (await isOnChain(on, credit))) continue
    const { network: caip2 } = credit
    const here = { caip2, mode: on?.network.mode ?? '' }
    found += await rows.writeFindings(ctx.db, here, credit.at.toISOString().slice(0, 10), [
      toUnfounded(credit),
    ])
  }
  return found
}

/** A token that this network does not list is none. */
async function isOnChain({ network, history }: Audited, credit: Credited): Promise<boolean> {
  const isListed = network.assets.some(({ address }) => toStored(network.caip2, address) === credit.asset)
  return isListed && (await history.hasTransfer(credit))
}

type Unpaid = Pick<Discrepancy, 'checkoutId' | 'storeId'> & { readonly day: string }

/** Checkouts that are COMPLETED without a payment. */
async function listUnpaid(db: Database, since: string): Promise<Unpaid[]> {
  return await db.query<Unpaid>(
    `select c.id as "checkoutId", c.store_id as "storeId", (c.created_at at time zone 'UTC')::date::text as day
     from checkouts c where c.id >= $1 and c.status = 'COMPLETED'
       and not exists (select 1 from credits k where k.checkout_id = c.id and k.orphaned_at is null)
     order by c.id desc limit $2`,
    [since, perNightMax],
  )
}

/** Ends the findings about checkouts that have a payment now, or are not called paid any more. */
async function resolvePaid(db: Database): Promise<void> {
  await db.query(
    `update audit_findings f set resolved_at = clock()
     where f.kind = 'unpaid' and f.resolved_at is null and not exists (select 1 from checkouts c
       where c.id = f.checkout_id and c.status = 'COMPLETED'
         and not exists (select 1 from credits k where k.checkout_id = c.id and k.orphaned_at is null))`,
  )
}

/** Payments of checkouts that no compared day covers, although their block is older than that, or younger than now. */
async function listUncompared(db: Database, since: string, now: Date): Promise<Credited[]> {
  const found = await db.query<rows.RawCredited>(
    `select ${rows.credited} from checkouts c join credits k on k.checkout_id = c.id and k.orphaned_at is null
     where c.id >= $1 and (k.block_time < $2 or k.block_time > $3)
       and not exists (select 1 from audit_days d where d.network = k.network and d.wallet = k.pay_to
         and d.asset = k.asset and d.day = (k.block_time at time zone 'UTC')::date)
     order by c.id desc limit $4`,
    [since, new Date(now.getTime() - behindDays * dayMs), new Date(now.getTime() + dayMs), perNightMax],
  )
  return found.map(rows.toCredited)
}
