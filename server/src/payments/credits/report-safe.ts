import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import { idOfNetwork } from '../../networks.ts'
import type { NewlySafe } from './finality-rows.ts'

export const safeSentence = 'payment safe: its block is not expected to be replaced'

/** One log line for each payment that has become safe, once that is committed. */
export function reportSafe(
  ctx: Context,
  tx: Transaction,
  network: string,
  payments: readonly NewlySafe[],
): void {
  if (payments.length === 0) return
  tx.afterCommit(() => {
    for (const { checkoutId, paymentId, transaction, blockNumber, disposition } of payments)
      ctx.log.info(
        {
          checkoutId,
          paymentId,
          network: idOfNetwork(network),
          txHash: transaction,
          block: Number.parseInt(blockNumber, 10),
          disposition,
          finality: 'safe',
          status: 'COMPLETED',
        },
        safeSentence,
      )
  })
}
