import { randomBytes, randomInt } from 'node:crypto'
import { networks } from '../../chains/networks.ts'
import { toBase58 } from '../../chains/svm/message.ts'
import type { Context } from '../../context.ts'
import { insertReference } from './reference-rows.ts'
import { freeReserved, insertReserved, readReservable, type Wanted } from './rows.ts'

/**
 * A plain transfer carries nothing but its amount. So a buyer who pays by hand is given an amount that nobody else has
 * at that address: the price and a little more, at random. It is held until some time after the checkout has ended,
 * because what is sent late must still be told apart from what is sent for somebody else.
 *
 * On Solana a transfer can carry a reference, an address that nobody has: there the amount is the price, and the
 * reference is one of a kind.
 */
export type Reserved = 'reserved' | 'crowded' | 'in_progress' | 'closed' | 'unavailable'

/** Less than a cent of a 6-decimal token: a buyer pays at most this much more than the price. */
export const suffixMax = 9_999
/** A twentieth of the suffixes. With more in use, a slip of the finger would too often be another buyer's amount. */
export const heldMax = 500
/** A wallet app shows an old amount for a day or two, not longer. */
const coolingHours = 48
/** As for signed payments: a chain that has not moved for this long is not being followed. */
const headAgeSecondsMax = 30
/** One of these is free: each is taken with a chance of one in twenty at most. */
const suffixesTried = 16
/** Another process may take what we chose. */
const roundsMax = 3

export async function reserveAmount(ctx: Context, wanted: Wanted): Promise<Reserved> {
  const limits = { suffixMax, heldMax, headAgeSecondsMax }
  const hasReferences = networks.some(({ caip2, family }) => caip2 === wanted.network && family === 'SOLANA')
  for (let round = 0; round < roundsMax; round++) {
    const suffixes = Array.from({ length: suffixesTried }, () => randomInt(1, suffixMax + 1))
    const isReserved = hasReferences
      ? await insertReference(ctx.db, wanted, toBase58(randomBytes(32)), headAgeSecondsMax)
      : await insertReserved(ctx.db, wanted, suffixes, limits)
    if (isReserved) {
      ctx.db.wakeUps.send('outcomes')
      return 'reserved'
    }
    const why = await readReservable(ctx.db, wanted, limits)
    if (why.isProcessing) return 'in_progress'
    if (!why.isPayable) return 'closed'
    if (why.isReserved) return 'reserved'
    if (!why.isFollowed) return 'unavailable'
    if (why.held >= heldMax) return 'crowded'
  }
  return 'crowded'
}

/** Lets amounts go that nobody will send any more. */
export async function freeAmounts(ctx: Context): Promise<void> {
  await freeReserved(ctx.db, coolingHours)
}
