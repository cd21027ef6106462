import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { remember } from '../../remember.ts'
import type { Rail, Rails } from '../rail.ts'
import { readReadiness } from './rows.ts'

/** A lane that has not shown itself for this long is not there. */
const laneSilenceSecondsMax = 15
/** A lane whose oldest transaction has been unmined for this long is stuck. */
const unminedSecondsMax = 60
/** A chain whose head has not moved for this long has halted, or we are cut off from it. */
const headAgeSecondsMax = 30
/** Below this many settlements' worth of gas a settler is as good as empty. */
const settlementsLeftMin = 200n
const rememberedMs = 500

export const whyRestoring = 'The database was restored and is being compared with the chain.'

/** Whether payments can be settled on a network now: null if so, or the sentence that says why not. */
export type Readiness = (network: string) => Promise<string | null>

/**
 * Asked before a claim, never after: what was claimed is settled whenever it can be. The answer is remembered for half
 * a second.
 */
export function openReadiness(ctx: Context, rails: Rails): Readiness {
  const { get } = remember((network: string) => findObstacle(ctx, network, rails.get(network)), {
    forMs: rememberedMs,
    entriesMax: rails.size,
    now: ctx.now,
  })
  return get
}

/** How many settlements each active settler of a network can still pay for at the present price of gas. */
export async function countSettlementsLeft(
  db: Database,
  { network, settlementCost }: Rail,
): Promise<{ address: string; left: bigint | null }[]> {
  const { lanes, baseFee } = await readReadiness(db, network.caip2)
  return lanes.flatMap(({ address, balanceWei }) =>
    address === null
      ? []
      : { address, left: balanceWei === null ? null : balanceWei / settlementCost(baseFee) },
  )
}

async function findObstacle(ctx: Context, network: string, rail: Rail | undefined): Promise<string | null> {
  if (!rail) return 'This deployment does not support that network.'
  const { lanes, headAgeSeconds, baseFee, isRestoring } = await readReadiness(ctx.db, network)
  if (isRestoring) return whyRestoring
  if (headAgeSeconds === null || headAgeSeconds > headAgeSecondsMax)
    return 'No new block has arrived for a while.'
  const isLive = lanes.some(
    ({ silenceSeconds, unminedSeconds, balanceWei }) =>
      silenceSeconds !== null &&
      silenceSeconds <= laneSilenceSecondsMax &&
      (!rail.isInOrder || unminedSeconds === null || unminedSeconds <= unminedSecondsMax) &&
      (balanceWei === null || balanceWei >= settlementsLeftMin * rail.settlementCost(baseFee)),
  )
  return isLive ? null : 'No settler is running that could send the payment.'
}
