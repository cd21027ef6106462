import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { idOfNetwork } from '../networks.ts'
import type { Ended } from './rows.ts'

const sentences = {
  refused: 'payment refused before it was sent: it would have failed',
  failed: 'payment given up: it can never be paid',
} as const
const refundSentence = 'what was handed out for a refund is dead: it can no longer move money'

/** Tells the operator about claims that will not be paid, one line each, once that is committed. */
export function reportEnded(
  ctx: Context,
  tx: Transaction,
  caip2: string,
  outcome: keyof typeof sentences,
  ended: readonly Ended[],
): void {
  const network = idOfNetwork(caip2)
  tx.afterCommit(() => {
    for (const { checkoutId, refundId, reason } of ended) {
      if (refundId !== null) {
        ctx.log.info({ refundId, network, reason }, refundSentence)
        continue
      }
      ctx.metrics.payments.inc({ network, outcome })
      ctx.log.info({ checkoutId, network, reason }, sentences[outcome])
    }
  })
}
