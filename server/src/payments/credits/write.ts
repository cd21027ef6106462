import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import { newId } from '../../ids.ts'
import { isRefundNonce } from '../refund-nonce.ts'
import type { Match } from '../transfers/rows.ts'
import { type Concern, type NewCredit, type Place, upsertCredits } from './rows.ts'

type Landed = {
  readonly concerns?: readonly Concern[]
  readonly matches?: readonly (Match & Pick<NewCredit, 'sender'>)[]
  readonly isWitnessed?: boolean
}

/**
 * Writes the credits for one place on a chain: transfers by authorization, except those that differ from their claim,
 * and plain transfers. One with a refund's nonce is written in any case: money went back, and a restored database may
 * know that nonce with other terms. Returns the checkouts whose facts changed.
 */
export async function writeCredits(
  ctx: Context,
  tx: Transaction,
  network: string,
  place: Place,
  { concerns = [], matches = [], isWitnessed = true }: Landed,
): Promise<string[]> {
  const now = ctx.now()
  const paymentId = () => newId('pay', ctx.config.cell, now)
  const credits: NewCredit[] = [
    ...concerns
      .filter(({ seen, claim }) => claim === null || claim.isMatch || isOfRefund({ seen, claim }))
      .map(({ seen, claim }) => ({
        seen,
        paymentId: paymentId(),
        checkoutId: claim?.isMatch && !claim.isForeign ? claim.checkoutId : null,
        // The transfer of a refund is nobody's payment, unless a store owns the wallet that it went to.
        storeId: claim?.isMatch && !claim.isForeign && claim.checkoutId ? claim.storeId : null,
        isExpected: claim?.isExpected === true && !claim.isForeign,
        sender: null,
      })),
    ...matches.map(({ seen, checkoutId, storeId, sender }) => ({
      seen: { ...seen, nonce: null },
      paymentId: paymentId(),
      checkoutId,
      storeId,
      isExpected: false,
      sender,
    })),
  ]
  return credits.length === 0 ? [] : await upsertCredits(tx, network, place, credits, isWitnessed)
}

/** No checkout has claimed it: payers choose the nonces of payments, and one may look like a refund's. */
function isOfRefund({ seen, claim }: Concern): boolean {
  return claim?.checkoutId === null && isRefundNonce(seen.nonce)
}
