import type { Context } from '../../context.ts'
import type { Rail, Wanted } from '../rail.ts'
import { freeCooling, freeReserved, readReservable } from './rows.ts'

/**
 * A plain transfer does not say which order it pays for. So a buyer who pays from another wallet or an exchange is
 * given something unique to this checkout: an amount slightly above the price or, where the chain allows it, a
 * reference to attach. It stays reserved for some time after the checkout has ended, so that a late transfer is not
 * mistaken for a payment to another checkout.
 */
export type Reserved = 'reserved' | 'crowded' | 'in_progress' | 'closed' | 'unavailable'

/** The most that a buyer pays above the price, in millionths of a token: less than a cent. */
export const suffixMax = 9_999
/**
 * How many amounts near a price a store may have reserved. Strangers can open orders and leave them, so what they leave
 * behind must not keep others from paying: amounts of ended checkouts and of buyers who reserved long ago don't count
 * towards `recent`.
 */
export const heldMax = {
  /** In the last hour. A twentieth of the suffixes: a typo hits another waiting buyer's amount that rarely. */
  recent: 500,
  recentMinutes: 60,
  /** In all. About half of the suffixes, so that a random one is free. Ended checkouts give theirs up first. */
  all: 5_000,
}
/** Enough for the buyers of the next minutes. */
const givenUpAtOnce = 100
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
    const why = await readReservable(ctx.db, wanted, { range, heldMax, headAgeSecondsMax })
    if (why.isProcessing) return 'in_progress'
    if (!why.isPayable) return 'closed'
    if (why.isReserved) return 'reserved'
    if (!why.isFollowed || !why.mayMatch) return 'unavailable'
    if (why.recent >= heldMax.recent) return 'crowded'
    if (why.held >= heldMax.all && (await freeCooling(ctx.db, wanted, range, givenUpAtOnce)) === 0)
      return 'crowded'
  }
  return 'crowded'
}

/** Frees amounts that nobody will send any more. */
export async function freeAmounts(ctx: Context): Promise<void> {
  await freeReserved(ctx.db, coolingHours)
}
