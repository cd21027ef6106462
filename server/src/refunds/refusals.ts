import type { Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { unitsToText } from '../money.ts'
import { Problem } from '../problems.ts'
import type { NewRefund, RefundBase } from './change.ts'
import { decimalsOf } from './refund.ts'

export function refundedElsewhere(): Problem {
  return new Problem(
    'payment_refunded',
    'Another store that has registered the same wallet refunds this payment.',
  )
}

/** Explains why `addRefund` added nothing. After a restore the payment may have another id, with refunds of its own. */
export async function explainUnwritten(tx: Transaction, base: RefundBase): Promise<Problem> {
  const { storeId, reserved } = (await readTotal(tx, base)) ?? { storeId: base.storeId, reserved: 0n }
  if (storeId !== base.storeId && reserved > 0n) return refundedElsewhere()
  return exceeds(base.network, base.asset, base.received - reserved)
}

export function exceeds(network: string, asset: string, left: bigint): Problem {
  const detail =
    left > 0n
      ? `${unitsToText(left, decimalsOf(network, asset))} is left of the payment.`
      : 'Nothing is left of the payment: refunds that exist have taken all of it.'
  return new Problem('refund_exceeds_payment', detail, {
    members: { left: (left > 0n ? left : 0n).toString() },
  })
}

/** How much refunds have taken of a payment, found by its identity; null if it has had none. */
async function readTotal(
  tx: Transaction,
  { network, asset, identity }: Pick<NewRefund, 'network' | 'asset' | 'identity'>,
): Promise<{ readonly storeId: StoreId; readonly reserved: bigint } | null> {
  const [row] = await tx.query<{ store_id: StoreId; reserved: string }>(
    'select store_id, reserved from refund_totals where network = $1 and asset = $2 and identity = $3',
    [network, asset, identity],
  )
  return row ? { storeId: row.store_id, reserved: BigInt(row.reserved) } : null
}
