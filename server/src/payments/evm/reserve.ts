import { randomInt } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { readFollower } from '../../chains/rows.ts'
import type { Context } from '../../context.ts'
import type { EvmNetwork } from '../../networks.ts'
import { noteLook } from '../looks.ts'
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
  if (!network.isLocal) await untilFresh(ctx, network)
  const unit = suffixUnits({ network }, wanted.asset)
  const suffixes = Array.from({ length: suffixesTried }, () => BigInt(randomInt(1, suffixMax + 1)) * unit)
  return await insertReserved(ctx.db, wanted, suffixes, {
    range: BigInt(suffixMax) * unit,
    cent: 10_000n * unit,
    heldMax,
    headAgeSecondsMax,
  })
}

/** How old the head is at most while the chain is watched, apart from the time between blocks. */
const freshSeconds = 6
const waits = { times: 40, eachMs: 100 }

/**
 * Waits until the chain is looked at again, if nobody had needed it for a while: a transfer before the reservation is no
 * payment, and which those are says the head.
 */
async function untilFresh(ctx: Context, { caip2, blockTimeMs }: EvmNetwork): Promise<void> {
  noteLook(ctx, [caip2])
  for (let i = 0; i < waits.times; i++) {
    const { headAgeSeconds = null } = (await readFollower(ctx.db, caip2)) ?? {}
    if (headAgeSeconds === null || headAgeSeconds <= freshSeconds + blockTimeMs / 1_000) return
    await wait(waits.eachMs)
  }
}
