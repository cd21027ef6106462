import { randomInt } from 'node:crypto'
import type { Context } from '../../context.ts'
import type { EvmNetwork } from '../../networks.ts'
import { untilAwake } from '../looks.ts'
import type { Wanted } from '../rail.ts'
import { heldMax, insertReserved, suffixMax, suffixUnits } from '../transfers/reserve.ts'

/** Enough for one to be free: each is taken with a probability of at most one half, usually far less. */
const suffixesTried = 16

/**
 * A token transfer carries nothing but its amount, so we reserve the price plus a random suffix that no other checkout
 * holds at that address.
 */
export async function reserveAmount(
  ctx: Context,
  network: EvmNetwork,
  wanted: Wanted,
  headAgeSecondsMax: number,
): Promise<boolean> {
  // A transfer from before the reservation is no payment, and what the head is says which those are.
  if (!network.isLocal) await untilAwake(ctx, network.caip2)
  const unit = suffixUnits({ network }, wanted.asset)
  const suffixes = Array.from({ length: suffixesTried }, () => BigInt(randomInt(1, suffixMax + 1)) * unit)
  return await insertReserved(ctx.db, wanted, suffixes, {
    range: BigInt(suffixMax) * unit,
    cent: 10_000n * unit,
    heldMax,
    headAgeSecondsMax,
  })
}
