import type { Page, StoreCheckout } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { firstIdAt, isId, type StoreId } from '../ids.ts'
import { invalid, Problem } from '../problems.ts'
import { checkText } from '../stores/check-text.ts'
import { orderIdBytesMax, toStoreWire } from './checkout.ts'
import { listCheckouts as listRows, readCheckout as readRow } from './rows.ts'

export async function readCheckout(
  ctx: Context,
  storeId: StoreId,
  checkoutId: string,
): Promise<StoreCheckout> {
  const row = isId('ch', checkoutId) ? await readRow(ctx.db, storeId, checkoutId) : null
  if (!row) throw new Problem('not_found', 'No such checkout.')
  return toStoreWire(ctx, row.checkout, row.payment)
}

/** Newest first. The cursor is the last id of the previous page, so new checkouts do not shift the list. */
export async function listCheckouts(
  ctx: Context,
  storeId: StoreId,
  query: {
    status: string | null
    orderId: string | null
    createdFrom: Date | null
    createdBefore: Date | null
    cursor: string | null
    limit: number
  },
): Promise<Page<StoreCheckout>> {
  if (query.cursor !== null && !isId('ch', query.cursor)) {
    throw invalid({ pointer: 'cursor', code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
  }
  const mistakes = query.orderId === null ? [] : checkText('orderId', query.orderId, orderIdBytesMax)
  if (mistakes.length > 0) throw invalid(...mistakes)
  const { cell } = ctx.config
  const end = query.createdBefore ? firstIdAt('ch', cell, query.createdBefore) : 'ch~'
  const rows = await listRows(ctx.db, storeId, {
    status: query.status,
    orderId: query.orderId,
    from: query.createdFrom ? firstIdAt('ch', cell, query.createdFrom) : 'ch_',
    before: query.cursor !== null && query.cursor < end ? query.cursor : end,
    limit: query.limit + 1,
  })
  const page = rows.slice(0, query.limit)
  return {
    data: page.map(({ checkout, payment }) => toStoreWire(ctx, checkout, payment)),
    nextCursor: rows.length > query.limit ? (page.at(-1)?.checkout.id ?? null) : null,
  }
}
