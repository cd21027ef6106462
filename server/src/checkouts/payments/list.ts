import type { Page, Payment } from '@farthing/sdk'
import { toStoredAnywhere } from '../../chains/families.ts'
import type { Context } from '../../context.ts'
import { firstIdAt, isId, type StoreId } from '../../ids.ts'
import { toPayment } from '../../payments/credits/credit.ts'
import {
  listPayments as listRows,
  noPaymentFilter,
  type PaymentFilter,
  readPayment as readRow,
} from '../../payments/credits/store-payments.ts'
import { invalid, Problem } from '../../problems.ts'
import { readLeft } from '../../refunds/rows.ts'
import { readReceiptOfPayment, receiptToWire } from '../buyer-receipts/read.ts'

export type PaymentQuery = Partial<PaymentFilter> & {
  readonly createdFrom?: Date | null
  readonly createdBefore?: Date | null
  readonly cursor?: string | null
  readonly limit: number
  readonly windowRows?: number
}

/**
 * Newest first. The cursor is the last id that was read. With filters that no index covers, that payment need not
 * match, so a page can be short or empty although another page follows.
 */
export async function listPayments(
  ctx: Context,
  storeId: StoreId,
  { createdFrom, createdBefore, cursor = null, limit, windowRows, ...given }: PaymentQuery,
): Promise<Page<Payment>> {
  const filter = { ...noPaymentFilter, ...given }
  if (cursor !== null && !isId('pay', cursor)) {
    throw invalid({ pointer: 'cursor', code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
  }
  if (filter.checkoutId !== null && !isId('ch', filter.checkoutId)) {
    throw invalid({
      pointer: 'checkoutId',
      code: 'id',
      detail: 'Must be a checkout id, which begins with ch_.',
    })
  }
  const { cell } = ctx.config
  const end = createdBefore ? firstIdAt('pay', cell, createdBefore) : 'pay~'
  const { rows, endedAt } = await listRows(
    ctx.db,
    storeId,
    {
      ...filter,
      payer: filter.payer === null ? null : toStoredAnywhere(filter.payer),
      transaction: filter.transaction === null ? null : toStoredAnywhere(filter.transaction),
    },
    {
      from: createdFrom ? firstIdAt('pay', cell, createdFrom) : 'pay_',
      before: cursor !== null && cursor < end ? cursor : end,
      limit: limit + 1,
      ...(windowRows !== undefined && { windowRows }),
    },
  )
  const page = rows.slice(0, limit)
  return {
    data: page.map(toPayment),
    nextCursor: rows.length > limit ? (page.at(-1)?.paymentId ?? null) : endedAt,
  }
}

export async function readPayment(ctx: Context, storeId: StoreId, paymentId: string): Promise<Payment> {
  const row = isId('pay', paymentId) ? await readRow(ctx.db, storeId, paymentId) : null
  if (!row) throw new Problem('not_found', 'No such payment.')
  const [left, receipt] = await Promise.all([
    readLeft(ctx.db, storeId, paymentId),
    row.checkoutId && readReceiptOfPayment(ctx.db, storeId, row.checkoutId, paymentId),
  ])
  return { ...toPayment(row), ...left, ...(receipt && { receipt: receiptToWire(receipt) }) }
}
