import { parseHash } from '../../chains/hex.ts'
import { openFollower } from '../../chains/rows.ts'
import type { Context } from '../../context.ts'
import type { SimulatedNetwork } from '../../networks.ts'
import { type Loop, maxTimeoutSeconds, type Rail, type Settling } from '../rail.ts'
import { reserveAmount } from '../transfers/reserve.ts'
import { planCase } from './simulate.ts'
import { answerPasted, takeClaims, takeStep, tick } from './step.ts'
import { openSimulatedVerifier } from './verify.ts'

/** How often the chain's time is written while nothing happens. */
const tickMs = 1_000

/**
 * The simulated network: a chain that is rows of the database, on which whoever tests a shop chooses what happens
 * (cases.ts). Only test stores have it, which triggers in the database enforce. It needs no node and no settler.
 */
export function openSimulatedRail(ctx: Context, network: SimulatedNetwork): Rail {
  return {
    network,
    providers: ctx.config.networks.includes(network.id) ? 1 : 0,
    hasSettlers: false,
    verifier: openSimulatedVerifier(network),
    toTerms: async (_checkoutId, offer) => ({
      scheme: 'exact',
      ...offer,
      maxTimeoutSeconds,
      extra: { simulated: true as const },
    }),
    reserve: (wanted, headAgeSecondsMax) => reserveAmount(ctx, network, wanted, headAgeSecondsMax),
    parseTransactionHash: parseHash,
    settlementCost: () => 0n,
    reserveCost: () => 0n,
    storeCostPerDay: null,
    unprovenCostPerDay: null,
    isInOrder: false,
    countAnswering: async () => 1,
    findDifferences: async () => [],
    probe: async () => [],
    nodeCosts: { calls: { idle: {}, awakeHour: null, payment: {} }, plans: [] },
    listLimits: () => [],
    readNonce: async () => 0,
    simulate: (offer, name) => planCase(network, offer, name),
    settle: (work) => settle(ctx, network, work),
  }
}

function settle(ctx: Context, network: SimulatedNetwork, { updateStatus }: Settling): Loop[] {
  const sim = { network, updateStatus }
  let tickedAt = Number.NEGATIVE_INFINITY
  const open = openFollower(ctx.db, network.caip2)
  return [
    {
      name: `simulate ${network.caip2}`,
      restMs: 50,
      wakeOn: 'claims',
      async run() {
        await open()
        const isMore = await takeClaims(ctx, sim)
        if (await takeStep(ctx, sim)) return true
        const now = ctx.now().getTime()
        if (Math.abs(now - tickedAt) >= tickMs) {
          await tick(ctx, sim)
          await answerPasted(ctx, sim)
          tickedAt = now
        }
        return isMore
      },
    },
  ]
}
