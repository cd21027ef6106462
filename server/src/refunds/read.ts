import type { Page, RefundStatus, Refund as Wire } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { isId, type StoreId } from '../ids.ts'
import { invalid, Problem } from '../problems.ts'
import { type Refund, toWire } from './refund.ts'
import * as rows from './rows.ts'

export async function readRefund(ctx: Context, storeId: StoreId, id: string): Promise<Wire> {
  const refund = isId('rf', id) ? await rows.readRefund(ctx.db, storeId, id) : null
  if (!refund) throw new Problem('not_found', 'No such refund.')
  return toWire(refund)
}

export type RefundQuery = {
  readonly paymentId?: string | null
  readonly checkoutId?: string | null
  readonly status?: RefundStatus | null
  readonly cursor?: string | null
  readonly limit: number
}

/** Newest first. A page can be short although another follows: a status is looked for among a bounded number. */
export async function listRefunds(
  ctx: Context,
  storeId: StoreId,
  { paymentId = null, checkoutId = null, status = null, cursor = null, limit }: RefundQuery,
): Promise<Page<Wire>> {
  if (cursor !== null && !isId('rf', cursor))
    throw invalid({ pointer: 'cursor', code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
  const filter = { paymentId, checkoutId, status }
  const { refunds, endedAt } = await rows.listRefunds(ctx.db, storeId, filter, cursor ?? 'rf~', limit + 1)
  const page = refunds.slice(0, limit)
  return {
    data: page.map(toWire),
    nextCursor: refunds.length > limit ? (page.at(-1)?.id ?? null) : endedAt,
  }
}

/** What a store's view of a checkout gains by refunds of its payments: nothing if there are none. */
export function refundFacts(refunds: readonly Refund[]): { refundedAmount?: string; refunds?: Wire[] } {
  if (refunds.length === 0) return {}
  const returned = refunds
    .filter(({ status }) => status === 'COMPLETED')
    .reduce((sum, { amount }) => sum + amount, 0n)
  return { refundedAmount: returned.toString(), refunds: refunds.map(toWire) }
}
