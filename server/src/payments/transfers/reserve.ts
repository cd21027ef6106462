import type { Context } from '../../context.ts'
import type { Rail, Wanted } from '../rail.ts'
import { freeReserved, readReservable } from './rows.ts'

/**
 * A plain transfer does not say which order it pays for. So a buyer who pays from another wallet or an exchange is
 * given something unique to this checkout: an amount slightly above the price or, where the chain allows it, a
 * reference to attach. It stays reserved for some time after the checkout has ended, so that a late transfer is not
 * mistaken for a payment to another checkout.
 */
export type Reserved = 'reserved' | 'crowded' | 'in_progress' | 'closed' | 'unavailable'

/** The most that a buyer pays above the price, in millionths of a token: less than a cent. */
export const suffixMax = 9_999
/** A twentieth of the suffixes. With more in use, a typo would too often hit another buyer's amount. */
export const heldMax = 500
/** A wallet app keeps showing an old amount for a day or two at most. */
const coolingHours = 48
/** As for signed payments: if the head has not moved for longer than this, the chain is not being followed. */
const headAgeSecondsMax = 30
/** Retries, because another process may take the amount we picked. */
const roundsMax = 3

/** A suffix of 1 in token units: a millionth of a token, whatever its decimals, because people have to type it. */
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
