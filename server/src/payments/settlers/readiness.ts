import type { Context } from '../../context.ts'
import { remember } from '../../remember.ts'
import { limitsAlone } from '../credits/alone.ts'
import { readAloneLeft } from '../credits/witness-rows.ts'
import type { Rail, Rails } from '../rail.ts'
import { type LaneState, readReadiness } from './gas-rows.ts'

/** A lane that has been silent for longer than this is not running. */
const laneSilenceSecondsMax = 15
/** A lane whose oldest transaction has been unmined for longer than this is stuck. */
const unminedSecondsMax = 60
/** If the head has not moved for longer than this, the chain has halted or we are cut off from it. */
const headAgeSecondsMax = 30
/**
 * If this many wallets have been waiting to be sent for longer than usual, two full batches are held up, and whoever is
 * claimed next waits longer still. Wallets are counted, not payments: one wallet can hold back its own.
 */
const overdueMax = 2 * 160
const rememberedMs = 500

export const whyRestoring = 'The database was restored and is being compared with the chain.'

/**
 * Whether a payment can be settled on a network now: null if so, or a sentence that says why not. Without an amount, the
 * answer is about the network, however many payments wait.
 */
export type Readiness = (network: string, amount?: Amount) => Promise<string | null>

/** In the asset's smallest unit. */
type Amount = { readonly asset: string; readonly units: bigint }

/**
 * Checked before a claim, never after: a claimed payment is settled as soon as that is possible. The answer is cached
 * for half a second.
 */
export function openReadiness(ctx: Context, rails: Rails): Readiness {
  const { get } = remember((network: string) => look(ctx, network, rails.get(network)), {
    forMs: rememberedMs,
    entriesMax: rails.size,
    now: ctx.now,
  })
  return async (network, amount) => {
    const { obstacle, aloneLeft, isBehind } = await get(network)
    if (obstacle !== null || !amount) return obstacle
    if (isBehind) return 'More payments are waiting than can be settled soon.'
    if (aloneLeft === null) return null
    const left = aloneLeft.get(amount.asset.toLowerCase()) ?? 0n
    return amount.units <= left ? null : 'A payment of this amount needs a second node, and only one answers.'
  }
}

type Look = {
  readonly obstacle: string | null
  /** What may still complete while one provider alone reports it, in units per asset; null if enough providers do. */
  readonly aloneLeft: ReadonlyMap<string, bigint> | null
  /** Whether so many payments wait that a further one would not be settled soon. */
  readonly isBehind: boolean
}

async function look(ctx: Context, network: string, rail: Rail | undefined): Promise<Look> {
  if (!rail)
    return {
      obstacle: 'This deployment does not support that network.',
      aloneLeft: null,
      isBehind: false,
    }
  const read = await readReadiness(ctx.db, network)
  const isAlone = read.witnesses !== null && read.witnesses < rail.network.witnessesMin
  const aloneLeft = isAlone ? await readAloneLeft(ctx.db, network, limitsAlone(ctx, rail.network)) : null
  return { obstacle: findObstacle(rail, read), aloneLeft, isBehind: read.overdue >= overdueMax }
}

type Read = Awaited<ReturnType<typeof readReadiness>>

function findObstacle(
  rail: Rail,
  { lanes, headAgeSeconds, baseFee, waiting, isRestoring, dispute }: Read,
): string | null {
  if (isRestoring) return whyRestoring
  if (dispute !== null) return 'The nodes of that network contradict each other.'
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
