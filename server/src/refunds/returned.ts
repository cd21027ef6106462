import type { Database, Transaction } from '../database/db.ts'
import { identityOf, noncesOf } from './identity.ts'

/** A payment with the facts that identify it on the chain. */
type OnChainPayment = Parameters<typeof identityOf>[0] & {
  readonly paymentId: string
  readonly network: string
  readonly asset: string
}

/**
 * The payments of which the chain shows a refund, even if `refund_totals` has none. A restored database has forgotten
 * refunds, and adopts them only when another refund of the same payment is created.
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

/** The payments with a slot whose nonce has moved money on the chain. */
async function findReturned(
  db: Database | Transaction,
  slots: readonly { paymentId: string; network: string; asset: string; wallet: string; nonce: string }[],
): Promise<string[]> {
  const rows = await db.query<{ payment_id: string }>(
    `select distinct i."paymentId" as payment_id
     from json_to_recordset($1) as i ("paymentId" text, network text, asset text, wallet text, nonce text)
     cross join lateral (select 1 from credits k where k.nonce = i.nonce and k.payer = i.wallet and k.asset = i.asset
       and k.network = i.network and k.orphaned_at is null offset 0) k`,
    [JSON.stringify(slots)],
  )
  return rows.map(({ payment_id }) => payment_id)
}
