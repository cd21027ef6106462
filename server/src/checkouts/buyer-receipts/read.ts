import type { BuyerReceipt as Wire } from '@farthing/sdk'
import { toShown } from '../../chains/families.ts'
import type { Database } from '../../database/db.ts'
import type { StoreId } from '../../ids.ts'
import { type BuyerReceipt, numberText, type ReceiptNumber } from './receipt.ts'

type ReceiptRow = Omit<BuyerReceipt, 'number' | 'seller'> & BuyerReceipt['number'] & BuyerReceipt['seller']

const columns = `series, year, number, checkout_id as "checkoutId", payment_id as "paymentId", store_name as "storeName",
  legal_name as "legalName", legal_address as "legalAddress", tax_id as "taxId", price_amount as "priceAmount",
  price_currency as "priceCurrency", network, asset, amount::text as amount, issued_on::text as "issuedOn",
  void_at as "voidAt"`

/** The valid receipt first, then void ones, the newest first. Only a payment that came back can have several. */
const newest = 'order by void_at desc nulls first limit 1'

/** What anybody who knows the checkout's id may see: its receipt. */
export async function readReceipt(
  db: Database,
  storeId: StoreId,
  checkoutId: string,
): Promise<BuyerReceipt | null> {
  const rows = await db.query<ReceiptRow>(
    `select ${columns} from buyer_receipts where store_id = $1 and checkout_id = $2 ${newest}`,
    [storeId, checkoutId],
  )
  return toReceipt(rows)
}

export async function readReceiptOfPayment(
  db: Database,
  storeId: StoreId,
  checkoutId: string,
  paymentId: string,
): Promise<BuyerReceipt | null> {
  const rows = await db.query<ReceiptRow>(
    `select ${columns} from buyer_receipts where store_id = $1 and checkout_id = $2 and payment_id = $3 ${newest}`,
    [storeId, checkoutId, paymentId],
  )
  return toReceipt(rows)
}

/** The checkout whose receipt has this number. */
export async function findByNumber(
  db: Database,
  storeId: StoreId,
  { series, year, number }: ReceiptNumber,
): Promise<string | null> {
  const [row] = await db.query<{ checkoutId: string }>(
    `select checkout_id as "checkoutId" from buyer_receipts
     where store_id = $1 and series = $2 and year = $3 and number = $4`,
    [storeId, series, year, number],
  )
  return row?.checkoutId ?? null
}

function toReceipt([row]: readonly ReceiptRow[]): BuyerReceipt | null {
  if (!row) return null
  const { series, year, number, storeName, legalName, legalAddress, taxId, ...rest } = row
  return {
    ...rest,
    number: { series, year, number },
    seller: { storeName, legalName, legalAddress, taxId },
    asset: toShown(row.network, row.asset),
  }
}

export function receiptToWire({ number, issuedOn, voidAt, seller }: BuyerReceipt): Wire {
  const { legalName, legalAddress, taxId } = seller
  return {
    number: numberText(number),
    issuedOn,
    voidAt: voidAt?.toISOString() ?? null,
    ...{ legalName, legalAddress, taxId },
  }
}
