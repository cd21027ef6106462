import type { Disposition, Page, Payment } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import { isId, type StoreId } from '../../ids.ts'
import { toPayment } from '../../payments/credits/credit.ts'
import { listPayments as listRows } from '../../payments/credits/store-rows.ts'
import { invalid } from '../../problems.ts'

/** Newest first. The cursor is the last id of the previous page. */
export async function listPayments(
  ctx: Context,
  storeId: StoreId,
  query: { checkoutId: string | null; disposition: Disposition | null; cursor: string | null; limit: number },
): Promise<Page<Payment>> {
  if (query.cursor !== null && !isId('pay', query.cursor)) {
    throw invalid({ pointer: 'cursor', code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
  }
  if (query.checkoutId !== null && !isId('ch', query.checkoutId)) {
    throw invalid({
      pointer: 'checkoutId',
      code: 'id',
      detail: 'Must be a checkout id, which begins with ch_.',
    })
  }
  const rows = await listRows(ctx.db, storeId, {
    checkoutId: query.checkoutId,
    disposition: query.disposition,
    before: query.cursor ?? 'pay~',
    limit: query.limit + 1,
  })
  const page = rows.slice(0, query.limit)
  return {
    data: page.map(toPayment),
    nextCursor: rows.length > query.limit ? (page.at(-1)?.paymentId ?? null) : null,
  }
}
