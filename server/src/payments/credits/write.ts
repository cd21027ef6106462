import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import { newId } from '../../ids.ts'
import type { Match } from '../transfers/rows.ts'
import { type Concern, type NewCredit, type Place, upsertCredits } from './rows.ts'

/**
 * Writes the credits for one place on a chain: transfers by authorization, except those that differ from their claim,
 * and plain transfers. Returns the checkouts whose facts changed.
 */
export async function writeCredits(
  ctx: Context,
  tx: Transaction,
  network: string,
  place: Place,
  concerns: readonly Concern[],
  matches: readonly (Match & Pick<NewCredit, 'sender'>)[] = [],
  isWitnessed = true,
): Promise<string[]> {
  const now = ctx.now()
  const paymentId = () => newId('pay', ctx.config.cell, now)
  const credits: NewCredit[] = [
    ...concerns
      .filter(({ claim }) => claim === null || claim.isMatch)
      .map(({ seen, claim }) => ({
        seen,
        paymentId: paymentId(),
        checkoutId: claim?.isForeign ? null : (claim?.checkoutId ?? null),
        storeId: claim?.isForeign ? null : (claim?.storeId ?? null),
        sender: null,
      })),
    ...matches.map(({ seen, checkoutId, storeId, sender }) => ({
      seen: { ...seen, nonce: null },
      paymentId: paymentId(),
      checkoutId,
      storeId,
      sender,
    })),
  ]
  return credits.length === 0 ? [] : await upsertCredits(tx, network, place, credits, isWitnessed)
}
