import type { Database, Transaction } from '../database/db.ts'
import { findReturned } from './create-rows.ts'
import { identityOf, noncesOf } from './identity.ts'

/** A payment as the chain knows it. */
export type OnChainPayment = Parameters<typeof identityOf>[0] & {
  readonly paymentId: string
  readonly network: string
  readonly asset: string
}

/**
 * Those of the payments of which the chain shows that something went back, whatever `refund_totals` says: a restored
 * database has forgotten refunds, and learns of them only when another refund of the payment is created.
 */
export async function readReturned(
  db: Database | Transaction,
  payments: readonly OnChainPayment[],
): Promise<ReadonlySet<string>> {
  if (payments.length === 0) return new Set()
  const slots = payments.flatMap((payment) =>
    noncesOf(payment.network, payment.asset, identityOf(payment)).map((nonce) => ({
      paymentId: payment.paymentId,
      network: payment.network,
      asset: payment.asset,
      wallet: payment.payTo,
      nonce,
    })),
  )
  return new Set(await findReturned(db, slots))
}
