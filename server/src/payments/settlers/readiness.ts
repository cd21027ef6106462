import type { Context } from '../../context.ts'
import { remember } from '../../remember.ts'
import type { Rail, Rails } from '../rail.ts'
import { type LaneState, readReadiness } from './gas-rows.ts'

/** A lane that has been silent for longer than this is not running. */
const laneSilenceSecondsMax = 15
/** A lane whose oldest transaction has been unmined for longer than this is stuck. */
const unminedSecondsMax = 60
/** If the head has not moved for longer than this, the chain has halted or we are cut off from it. */
const headAgeSecondsMax = 30
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

async function findObstacle(ctx: Context, network: string, rail: Rail | undefined): Promise<string | null> {
  if (!rail) return 'This deployment does not support that network.'
  const { lanes, headAgeSeconds, baseFee, waiting, isRestoring } = await readReadiness(ctx.db, network)
  if (isRestoring) return whyRestoring
  if (headAgeSeconds === null || headAgeSeconds > headAgeSecondsMax)
    return 'No new block has arrived for a while.'
  const running = lanes.filter(
    ({ silenceSeconds, unminedSeconds }) =>
      silenceSeconds !== null &&
      silenceSeconds <= laneSilenceSecondsMax &&
      (!rail.isInOrder || unminedSeconds === null || unminedSeconds <= unminedSecondsMax),
  )
  if (running.length === 0) return 'No settler can send the payment now.'
  if (rail.reserveCost(baseFee, 0n, 0) === null) return 'The network’s fees are above our limit right now.'
  return running.some((lane) => canPay(rail, lane, baseFee, waiting))
    ? null
    : 'No settler has enough money for the network’s fees.'
}

/**
 * Whether a settler can pay for everything that is claimed, and a full batch more: nodes demand the most that a
 * transaction can cost before they take it.
 */
function canPay(rail: Rail, lane: LaneState, baseFee: bigint, waiting: number): boolean {
  const needed = rail.reserveCost(baseFee, lane.dataFeeWei, waiting)
  return needed !== null && !lane.isUnfunded && lane.balanceWei !== null && lane.balanceWei >= needed
}
