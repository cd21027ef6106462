import type { Context } from '../../context.ts'
import type { Rail, Wanted } from '../rail.ts'
import { freeReserved, readReservable } from './rows.ts'

/**
 * A plain transfer says nothing about the order it pays for. So a buyer who pays from another wallet or an exchange is
 * given something that only this checkout has: an amount slightly above the price, or, where the chain allows it, a
 * reference to attach. It stays reserved for some time after the checkout has ended, because a late transfer must still
 * be told apart from one that is meant for another checkout.
 */
export type Reserved = 'reserved' | 'crowded' | 'in_progress' | 'closed' | 'unavailable'

/** In millionths of a token, so less than a cent: the most that a buyer pays above the price. */
export const suffixMax = 9_999
/** A twentieth of the suffixes. With more in use, a typing mistake would too often hit another buyer's amount. */
export const heldMax = 500
/** A wallet app keeps showing an old amount for a day or two, not longer. */
const coolingHours = 48
/** As for signed payments: a chain that has not moved for this long is not being followed. */
const headAgeSecondsMax = 30
/** Another process may take the amount we picked. */
const roundsMax = 3

/** A suffix of 1 in units of the token: a millionth, however many decimals it has, because people have to type it. */
export function suffixUnits({ network }: Pick<Rail, 'network'>, asset: string): bigint {
  const decimals = network.assets.find(
    ({ address }) => address.toLowerCase() === asset.toLowerCase(),
  )?.decimals
  return 10n ** BigInt((decimals ?? 6) - 6)
}

export async function reserveTransfer(
  ctx: Context,
  rail: Rail | undefined,
  wanted: Wanted,
): Promise<Reserved> {
  if (!rail) return 'unavailable'
  const range = suffixUnits(rail, wanted.asset) * BigInt(suffixMax)
  for (let round = 0; round < roundsMax; round++) {
    if (await rail.reserve(wanted, headAgeSecondsMax)) {
      ctx.db.wakeUps.send('outcomes')
      return 'reserved'
    }
    const why = await readReservable(ctx.db, wanted, { range, headAgeSecondsMax })
    if (why.isProcessing) return 'in_progress'
    if (!why.isPayable) return 'closed'
    if (why.isReserved) return 'reserved'
    if (!why.isFollowed) return 'unavailable'
    if (why.held >= heldMax) return 'crowded'
  }
  return 'crowded'
}

/** Frees amounts that nobody will send any more. */
export async function freeAmounts(ctx: Context): Promise<void> {
  await freeReserved(ctx.db, coolingHours)
}
