import type { CheckoutStatus } from '@farthing/sdk'
import type { Database } from '../../database/db.ts'
import type { CheckoutId, StoreId } from '../../ids.ts'

/** What one line about a checkout says. */
export type Summary = {
  readonly id: CheckoutId
  readonly orderId: string
  readonly priceAmount: string
  readonly priceCurrency: string
  readonly status: CheckoutStatus
  readonly createdAt: Date
}

/** These checkouts of the store, and the newest that are being paid. */
export async function listSummaries(
  db: Database,
  storeId: StoreId,
  ids: readonly string[],
  processingMax: number,
): Promise<Summary[]> {
  return await db.query<Summary>(
    `select c.id, c.order_id as "orderId", c.price_amount as "priceAmount", c.price_currency as "priceCurrency",
       c.status, c.created_at as "createdAt"
     from (
       select id from unnest($2::text[]) as id
       union
       (select id from checkouts where store_id = $1 and status = 'PROCESSING' order by id desc limit $3)
     ) wanted join checkouts c on c.id = wanted.id where c.store_id = $1`,
    [storeId, ids, processingMax],
  )
}
