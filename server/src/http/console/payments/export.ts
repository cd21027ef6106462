import type { Payment } from '@farthing/sdk'
import type { Checkout } from '../../../checkouts/checkout.ts'
import { listPayments } from '../../../checkouts/payments/list.ts'
import { listWithReceived, readCheckouts } from '../../../checkouts/read.ts'
import type { Context } from '../../../context.ts'
import { csvLine, withoutFormula } from '../../../csv.ts'
import type { StoreId } from '../../../ids.ts'
import { unitsToText } from '../../../money.ts'
import { type CreditRow, toPayment } from '../../../payments/credits/credit.ts'
import { sumReturned } from '../../../refunds/rows.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { checkoutQueryOf, type ListQuery, paymentQueryOf } from './query.ts'
import { mainOf } from './view.ts'

const rowsPerRead = 100
/**
 * 100,000 rows, which a spreadsheet still opens. With a filter that no index knows a read may find nothing, so what is
 * bounded is how many there are. The file's last line says if there is more.
 */
const readsPerExport = 1_000

/** The list that is shown, from its first row to its last, a page at a time: it takes no more memory the longer it is. */
export async function* exportRows(
  ctx: Context,
  storeId: StoreId,
  timeZone: string,
  query: ListQuery,
  readsMax = readsPerExport,
): AsyncGenerator<string> {
  const columns = query.show === 'money' ? moneyColumns : checkoutColumns
  yield csvLine(columns)
  let cursor: string | null = null
  let reads = 0
  do {
    const asked: ListQuery = { ...query, cursor }
    const page = await readPage(ctx, storeId, timeZone, asked)
    yield page.lines.map((line) => csvLine(line)).join('')
    cursor = page.nextCursor
  } while (cursor !== null && ++reads < readsMax)
  if (cursor !== null) yield csvLine(['The list goes on. Choose a shorter time.'])
}

type Lines = { readonly lines: readonly (readonly string[])[]; readonly nextCursor: string | null }

async function readPage(ctx: Context, storeId: StoreId, timeZone: string, query: ListQuery): Promise<Lines> {
  if (query.show === 'checkouts') {
    const asked = { ...checkoutQueryOf(query, timeZone), limit: rowsPerRead }
    const { data, nextCursor } = await listWithReceived(ctx, storeId, asked)
    const paid = data.map(({ received }) => mainOf(received))
    const ids = paid.flatMap((each) => each?.paymentId ?? [])
    const returned = await sumReturned(ctx.db, storeId, ids)
    const lines = data.map(({ checkout }, place) => checkoutLine(checkout, paid[place] ?? null, returned))
    return { lines, nextCursor }
  }
  const asked = { ...paymentQueryOf(query, timeZone), limit: rowsPerRead }
  const { data, nextCursor } = await listPayments(ctx, storeId, asked)
  const ids = data.flatMap(({ checkoutId }) => checkoutId ?? [])
  const checkouts = await readCheckouts(ctx.db, storeId, ids)
  const paymentIds = data.map(({ id }) => id)
  const returned = await sumReturned(ctx.db, storeId, paymentIds)
  const lines = data.map((each) => moneyLine(each, checkouts.get(each.checkoutId ?? ''), returned))
  return { lines, nextCursor }
}

/** New ones come last: what people import by place stays where it is. */
const paidColumns = [
  'payment_id',
  'disposition',
  'network',
  'token',
  'amount',
  'payer',
  'transaction',
  'finality',
  'refunded_amount',
]
const checkoutColumns = [
  ...['checkout_id', 'order_id', 'description', 'created_at_utc', 'status', 'price_amount', 'price_currency'],
  ...['rate', 'rate_source', 'metadata', ...paidColumns],
]
const moneyColumns = [
  ...['first_seen_at_utc', 'checkout_id', 'order_id', 'price_amount', 'price_currency', 'pay_to', 'note'],
  ...paidColumns,
]

/** By payment, what refunds have returned of it. */
type Returned = ReadonlyMap<string, bigint>

function checkoutLine(checkout: Checkout, main: CreditRow | null, returned: Returned): string[] {
  const { rate, metadata } = checkout
  return [
    ...[
      checkout.id,
      withoutFormula(checkout.orderId),
      withoutFormula(checkout.description ?? ''),
      checkout.createdAt.toISOString(),
    ],
    ...[checkout.status, checkout.priceAmount, checkout.priceCurrency],
    ...[rate ? `${rate.usdPerBase}/${rate.perBase}` : '', rate?.source ?? ''],
    withoutFormula(metadata === null ? '' : JSON.stringify(metadata)),
    ...paidLine(main && toPayment(main), returned),
  ]
}

function moneyLine(payment: Payment, checkout: Checkout | undefined, returned: Returned): string[] {
  return [
    ...[payment.includedAt, payment.checkoutId ?? '', withoutFormula(checkout?.orderId ?? '')],
    ...[
      checkout?.priceAmount ?? '',
      checkout?.priceCurrency ?? '',
      payment.payTo,
      withoutFormula(payment.note?.text ?? ''),
    ],
    ...paidLine(payment, returned),
  ]
}

function paidLine(payment: Payment | null, returned: Returned): string[] {
  if (!payment) return paidColumns.map(() => '')
  const { symbol, decimals } = describeOption(payment)
  return [
    ...[
      payment.id,
      payment.disposition,
      payment.network,
      symbol,
      unitsToText(BigInt(payment.amount), decimals),
    ],
    ...[payment.payer, payment.transaction, payment.finality],
    unitsToText(returned.get(payment.id) ?? 0n, decimals),
  ]
}
