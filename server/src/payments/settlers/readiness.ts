import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { remember } from '../../remember.ts'
import { limitsAlone } from '../credits/alone.ts'
import { readAloneLeft } from '../credits/witness-rows.ts'
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

/**
 * Whether a payment can be settled on a network now: null if so, or a sentence that says why not. Without an amount, the
 * answer is for any.
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
    const { obstacle, aloneLeft } = await get(network)
    if (obstacle !== null || aloneLeft === null || !amount) return obstacle
    const left = aloneLeft.get(amount.asset.toLowerCase()) ?? 0n
    return amount.units <= left ? null : 'A payment of this amount needs a second node, and only one answers.'
  }
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

type Look = {
  readonly obstacle: string | null
  /** What may still complete while one provider alone reports it, in units per asset; null if enough providers do. */
  readonly aloneLeft: ReadonlyMap<string, bigint> | null
}

async function look(ctx: Context, network: string, rail: Rail | undefined): Promise<Look> {
  if (!rail) return { obstacle: 'This deployment does not support that network.', aloneLeft: null }
  const read = await readReadiness(ctx.db, network)
  const isAlone = read.witnesses !== null && read.witnesses < rail.network.witnessesMin
  const aloneLeft = isAlone ? await readAloneLeft(ctx.db, network, limitsAlone(ctx, rail.network)) : null
  return { obstacle: findObstacle(rail, read), aloneLeft }
}

type Read = Awaited<ReturnType<typeof readReadiness>>

function findObstacle(
  rail: Rail,
  { lanes, headAgeSeconds, baseFee, isRestoring, dispute }: Read,
): string | null {
  if (isRestoring) return whyRestoring
  if (dispute !== null) return 'The nodes of that network contradict each other.'
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
