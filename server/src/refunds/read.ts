import type { Page, RefundStatus, Refund as Wire } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { openWaiters } from '../database/waiters.ts'
import { isId, type StoreId } from '../ids.ts'
import { invalid, Problem } from '../problems.ts'
import { type Refund, toWire } from './refund.ts'
import { findRefund, type RefundRow, refundColumns, toRefund } from './rows.ts'

export async function readRefund(ctx: Context, storeId: StoreId, id: string): Promise<Wire> {
  const refund = isId('rf', id) ? await findRefund(ctx.db, storeId, id) : null
  if (!refund) throw new Problem('not_found', 'No such refund.')
  return toWire(refund)
}

type RefundQuery = {
  readonly paymentId?: string | null
  readonly checkoutId?: string | null
  readonly status?: RefundStatus | null
  readonly cursor?: string | null
  readonly limit: number
}

/** Filters by status read this many refunds at a time, so that a rare status does not read all of them. */
const windowRows = 500

/** Newest first. With a status, a page can be short although another follows. */
export async function listRefunds(
  ctx: Context,
  storeId: StoreId,
  { paymentId = null, checkoutId = null, status = null, cursor = null, limit }: RefundQuery,
): Promise<Page<Wire>> {
  if (cursor !== null && !isId('rf', cursor))
    throw invalid({ pointer: 'cursor', code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
  const index =
    paymentId !== null ? 'r.payment_id = $5' : checkoutId !== null ? 'r.checkout_id = $5' : '$5::text is null'
  const rows = await ctx.db.query<RefundRow>(
    `select ${refundColumns} from refunds r where r.store_id = $1 and r.id < $2 and ${index} order by r.id desc
     limit case when $4::text is null then $3 else ${windowRows} end`,
    [storeId, cursor ?? 'rf~', limit + 1, status, paymentId ?? checkoutId],
  )
  const found = rows.map(toRefund).filter((refund) => status === null || refund.status === status)
  const page = found.slice(0, limit)
  const isCut = status !== null && rows.length === windowRows
  const last = found.length > limit ? page.at(-1) : isCut ? rows.at(-1) : null
  return { data: page.map(toWire), nextCursor: last?.id ?? null }
}

/** Counts the store's newest refunds that wait for it to sign, to name a transaction, or to confirm an address. */
export async function countForStore(db: Database | Transaction, storeId: StoreId): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*)::integer as count from (
       select * from refunds r where r.store_id = $1 order by r.id desc limit ${windowRows}
     ) r where r.status = 'REQUESTED' and r.cancel_asked_at is null and (r.recipient is not null
       or exists (select 1 from address_requests m where m.refund_id = r.id and m.address is not null))`,
    [storeId],
  )
  return row?.count ?? 0
}

/** The fields about refunds in a store's view of a checkout; none if there are no refunds. */
export function refundFacts(refunds: readonly Refund[]): { refundedAmount?: string; refunds?: Wire[] } {
  if (refunds.length === 0) return {}
  const returned = refunds
    .filter(({ status }) => status === 'COMPLETED')
    .reduce((sum, { amount }) => sum + amount, 0n)
  return { refundedAmount: returned.toString(), refunds: refunds.map(toWire) }
}

/** Long enough for a block or two of most networks, shorter than any client's patience. */
const patienceMs = 5_000
const pollMs = 250
/** Every settled payment wakes us too. */
const spacingMs = 50

/** Waits a few seconds for a refund's outcome, then reads the refund. */
export function openRefundWaits(ctx: Context): (storeId: StoreId, id: string) => Promise<Wire> {
  const waiters = openWaiters<string, true>(ctx.db.wakeUps, {
    channel: 'outcomes',
    everyMs: pollMs,
    spacingMs,
    now: ctx.now,
    async find(ids) {
      const rows = await ctx.db.query<{ id: string }>(
        `select id from refunds where id = any($1) and status in ('COMPLETED', 'DECLARED', 'FAILED', 'CANCELED')`,
        [ids],
      )
      const ended = new Set(rows.map(({ id }) => id))
      return ids.map((id) => ended.has(id) || null)
    },
    onError: (error) =>
      ctx.log.warn({ err: error }, 'could not read the outcomes of refunds; trying again within 250 ms'),
  })
  return async (storeId, id) => {
    await waiters.wait(id, patienceMs)
    return await readRefund(ctx, storeId, id)
  }
}
