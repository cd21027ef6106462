import { type CheckoutId, newId, type StoreId } from '../../../src/ids.ts'
import { insertMovements, type NewMovement } from '../../../src/movements/rows.ts'
import { networks } from '../../../src/networks.ts'
import type { TestApp } from '../../support/app.ts'

const local = networks.find(({ id }) => id === 'LOCAL')
const solana = networks.find(({ id }) => id === 'SOLANA_DEVNET')

/** A line about to be booked: a payment of 12.50 USDC unless something else is said. */
export function lineOf(storeId: string, change: Partial<NewMovement> = {}): NewMovement {
  const now = new Date()
  return {
    id: newId('mov', '00', now),
    storeId: storeId as StoreId,
    type: 'payment',
    happenedAt: now,
    network: local?.caip2 ?? '',
    asset: local?.assets[0]?.address.toLowerCase() ?? '',
    amount: 12_500_000n,
    wallet: '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
    transaction: `0x${'ab'.repeat(32)}`,
    place: 3,
    paymentId: newId('pay', '00', now),
    refundId: null,
    checkoutId: newId('ch', '00', now) as CheckoutId,
    orderId: 'A-1',
    priceAmount: '12.50',
    priceCurrency: 'USD',
    rate: null,
    rateSource: null,
    rateTime: null,
    reverses: null,
    actor: null,
    disposition: 'exact',
    value: '12.50',
    valueCurrency: 'USD',
    valueRate: null,
    valueRateSource: 'price',
    valueRateTime: null,
    ...change,
  }
}

/** The same on the other family. */
export const onSolana = {
  network: solana?.caip2 ?? '',
  asset: solana?.assets[0]?.address ?? '',
  wallet: '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi',
}

/** Books lines as they would have been booked at a time in the past. */
export async function bookAt(
  { ctx }: Pick<TestApp, 'ctx'>,
  time: Date | string,
  lines: readonly NewMovement[],
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    await tx.query(
      `select set_config('farthing.clock_offset', ($1::timestamptz - clock_timestamp())::text, true)`,
      [new Date(time)],
    )
    await insertMovements(tx, lines)
  })
}
