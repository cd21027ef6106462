import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import { idOfNetwork } from '../../networks.ts'

/** Tells the operator which payments a transaction carries, in one line, once its bytes are committed. */
export function reportSent(
  ctx: Context,
  tx: Transaction,
  { network, settler, nonce }: { readonly network: string; readonly settler: string; readonly nonce: number },
  txHash: string,
  carried: readonly { readonly checkoutId: string | null; readonly refundId?: string | null }[],
): void {
  const checkoutIds = carried.flatMap(({ checkoutId }) => checkoutId ?? [])
  const refundIds = carried.flatMap(({ refundId }) => refundId ?? [])
  tx.afterCommit(() =>
    ctx.log.info(
      {
        network: idOfNetwork(network),
        settler,
        nonce,
        txHash,
        payments: carried.length - refundIds.length,
        checkoutIds,
        ...(refundIds.length > 0 && { refundIds }),
      },
      'payments signed in one transaction: it is broadcast next',
    ),
  )
}
