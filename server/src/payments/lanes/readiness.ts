import { networks } from '../../chains/networks.ts'
import type { Context } from '../../context.ts'
import type { Database } from '../../db.ts'
import { readReadiness } from './rows.ts'

/** A lane that has not shown itself for this long is not there. */
const laneSilenceSecondsMax = 15
/** A lane whose oldest transaction has been unmined for this long is stuck. */
const unminedSecondsMax = 60
/** A chain whose head has not moved for this long has halted, or we are cut off from it. */
const headAgeSecondsMax = 30
/** Below this many settlements' worth of gas a settler is as good as empty. */
const settlementsLeftMin = 200n
/** Gas of a lone settlement, rounded up. */
const settlementGas = 100_000n
/** What the chain takes for the two signatures of a payment on Solana. */
const signaturesLamports = 10_000n
const rememberedMs = 500

export const whyRestoring = 'The books are being compared with the chain after a restore.'

/** Whether payments can be settled on a network now: null if so, or the sentence that says why not. */
export type Readiness = (network: string) => Promise<string | null>

/**
 * Asked before a claim, never after: what was claimed is settled whenever it can be. The answer is remembered for half
 * a second.
 */
export function openReadiness(ctx: Context): Readiness {
  const remembered = new Map<string, { at: number; answer: Promise<string | null> }>()
  return (network) => {
    const at = ctx.now().getTime()
    const known = remembered.get(network)
    if (known && at - known.at < rememberedMs) return known.answer
    const answer = judge(ctx, network)
    remembered.set(network, { at, answer })
    answer.catch(() => remembered.delete(network))
    return answer
  }
}

/** How many settlements each active settler of a network can still pay for at the present price of gas. */
export async function countSettlementsLeft(
  db: Database,
  network: string,
): Promise<{ address: string; left: bigint | null }[]> {
  const { lanes, baseFee } = await readReadiness(db, network)
  return lanes.flatMap(({ address, balanceWei }) =>
    address === null
      ? []
      : { address, left: balanceWei === null ? null : balanceWei / costOf(network, baseFee) },
  )
}

/** The most that a settlement costs, in the smallest unit that fees are paid in. */
function costOf(caip2: string, baseFee: bigint): bigint {
  const network = networks.find((one) => one.caip2 === caip2)
  if (network?.family !== 'SOLANA') return settlementGas * (baseFee + 1n)
  return signaturesLamports + (BigInt(network.computeUnitsMax) * network.computeUnitPriceMax) / 1_000_000n
}

async function judge(ctx: Context, network: string): Promise<string | null> {
  const { lanes, headAgeSeconds, baseFee, isRestoring } = await readReadiness(ctx.db, network)
  if (isRestoring) return whyRestoring
  if (headAgeSeconds === null || headAgeSeconds > headAgeSecondsMax)
    return 'The chain has not moved for a while.'
  // Where transactions do not wait for each other, one that does not land holds up nothing.
  const isInOrder = networks.some(({ caip2, family }) => caip2 === network && family === 'EVM')
  const isLive = lanes.some(
    ({ silenceSeconds, unminedSeconds, balanceWei }) =>
      silenceSeconds !== null &&
      silenceSeconds <= laneSilenceSecondsMax &&
      (!isInOrder || unminedSeconds === null || unminedSeconds <= unminedSecondsMax) &&
      (balanceWei === null || balanceWei >= settlementsLeftMin * costOf(network, baseFee)),
  )
  return isLive ? null : 'No settler is running that could send it.'
}
