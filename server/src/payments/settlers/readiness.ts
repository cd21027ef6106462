import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { remember } from '../../remember.ts'
import type { Rail, Rails } from '../rail.ts'
import { readReadiness } from './rows.ts'

/** A lane that has been silent for longer than this is not running. */
const laneSilenceSecondsMax = 15
/** A lane whose oldest transaction has been unmined for longer than this is stuck. */
const unminedSecondsMax = 60
/** If the head has not moved for longer than this, the chain has halted or we are cut off from it. */
const headAgeSecondsMax = 30
/** A settler that cannot pay for this many settlements counts as empty. */
const settlementsLeftMin = 200n
const rememberedMs = 500

export const whyRestoring = 'The database was restored and is being compared with the chain.'

/** Whether payments can be settled on a network now: null if so, or a sentence that says why not. */
export type Readiness = (network: string) => Promise<string | null>

/**
 * Checked before a claim, never after: a claimed payment is settled as soon as that is possible. The answer is cached
 * for half a second.
 */
export function openReadiness(ctx: Context, rails: Rails): Readiness {
  const { get } = remember((network: string) => findObstacle(ctx, network, rails.get(network)), {
    forMs: rememberedMs,
    entriesMax: rails.size,
    now: ctx.now,
  })
  return get
}

/** How many settlements each of a network's active settlers can still pay for at the current gas price. */
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
  return isLive ? null : 'No settler can send the payment now.'
}
