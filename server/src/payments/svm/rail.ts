import { openFailures } from '../../chains/note-failures.ts'
import { releaseFollower } from '../../chains/rows.ts'
import { countAnswering } from '../../chains/rpc.ts'
import { checkSvmChain, openSvmChain, type SvmChain } from '../../chains/svm/chain.ts'
import { svmCosts } from '../../chains/svm/costs.ts'
import { probeSvmChain } from '../../chains/svm/probe.ts'
import { nodesOf } from '../../config/settings.ts'
import type { Context } from '../../context.ts'
import type { SolanaNetwork } from '../../networks.ts'
import { type Loop, openCheck, type Rail, type Settling } from '../rail.ts'
import { openSteps } from '../settlers/lane.ts'
import { releaseSettler } from '../settlers/rows.ts'
import { tendAccounts } from './accounts.ts'
import { openDoubts } from './doubts.ts'
import { openBalance, stepSvmLane } from './lane.ts'
import { nameSettler, preparePayment } from './prepare.ts'
import { openReferences, reserveReference } from './references.ts'
import { findSent, openSvmRefunds, parseSignature } from './refund.ts'
import { openFeePayers } from './rows.ts'
import { openSimulate } from './simulate.ts'
import { openSvmVerifier } from './verify.ts'
import { openWatch } from './watch.ts'

/** Solana's fee for the two signatures of a payment, in lamports. */
const signaturesCost = 10_000n
/** A settler counts as empty if it can't pay for this many payments in addition to those that wait. */
const settlementsLeftMin = 200

/** Solana: transactions that one of our settlers must also sign, watched by their hashes. */
export function openSvmRail(ctx: Context, network: SolanaNetwork): Rail {
  const nodes = nodesOf(ctx.config, network.id)
  const chain = openSvmChain(network, nodes, ctx.now, openFailures(ctx, network.id, nodes))
  const feePayers = openFeePayers(ctx)
  const simulate = openSimulate(chain)
  const settlementCost =
    signaturesCost + (BigInt(network.computeUnitsMax) * network.computeUnitPriceMax) / 1_000_000n
  return {
    network,
    providers: chain.rpc.providers.length,
    hasSettlers: true,
    verifier: {
      ...openSvmVerifier(chain, feePayers, simulate),
      prepare: (terms, payer) => preparePayment(ctx, chain, terms, payer),
    },
    toTerms: (checkoutId, offer) => nameSettler(network, feePayers, checkoutId, offer),
    reserve: (wanted, headAgeSecondsMax) => reserveReference(ctx, wanted, headAgeSecondsMax),
    settlementCost: () => settlementCost,
    reserveCost: (_baseFee, _dataFee, waiting) => settlementCost * BigInt(settlementsLeftMin + waiting),
    // A payment costs little and always about the same.
    storeCostPerDay: null,
    unprovenCostPerDay: null,
    isInOrder: false,
    countAnswering: () => countAnswering(chain.rpc, 'getSlot'),
    findDifferences: () => checkSvmChain(chain),
    probe: () => probeSvmChain(network, nodes, ctx.now),
    nodeCosts: svmCosts,
    listLimits: chain.rpc.listLimits,
    // Solana's accounts have no nonces. Only our own rows count the transactions of a settler.
    readNonce: async () => 0,
    refunds: openSvmRefunds(chain, feePayers, simulate),
    sent: { parse: parseSignature, find: (sent) => findSent(ctx, chain, sent) },
    settle: (work) => settle(ctx, chain, work, settlementCost * BigInt(settlementsLeftMin)),
  }
}

/**
 * Per network, one loop each to create token accounts, watch sent transactions and look up references; plus one lane
 * per key.
 */
function settle(
  ctx: Context,
  chain: SvmChain,
  { signers, holder, updateStatus }: Settling,
  lamportsMin: bigint,
): Loop[] {
  const { caip2, id, lookEveryMs } = chain.network
  const check = openCheck(ctx, id, () => checkSvmChain(chain))
  const own = signers.filter((signer) => signer.family === 'SOLANA')
  const keys = { addresses: own.map(({ address }) => address), reported: new Set<string>() }
  const noteDoubt = openDoubts(ctx, id, 'payments get 503 and nothing is decided')
  const watch = openWatch(ctx, chain, holder, { updateStatus, noteDoubt, keys })
  const lookForReferences = openReferences(
    ctx,
    chain,
    updateStatus,
    openDoubts(ctx, id, 'transfers by reference wait'),
  )
  return [
    {
      name: `accounts ${caip2}`,
      restMs: 1_000,
      run: async () => (await check()) && (await tendAccounts(ctx, { chain, signer: own[0] })),
    },
    {
      name: `watch ${caip2}`,
      restMs: lookEveryMs.sent,
      run: async () => (await check()) && (await watch()) === true,
      release: () => releaseFollower(ctx.db, caip2, holder),
    },
    {
      name: `references ${caip2}`,
      restMs: 1_000,
      run: async () => (await check()) && (await lookForReferences()),
    },
    ...own.map((signer): Loop => {
      const readBalance = openBalance(ctx, chain, lamportsMin)
      const resting = new Map<string, number>()
      const lane = { chain, signer, holder, updateStatus, resting, readBalance, lamportsMin }
      const steps = openSteps(ctx, id, signer)
      return {
        name: `lane ${caip2} ${signer.address}`,
        restMs: 250,
        wakeOn: 'claims',
        run: async () => (await check()) && (await steps(() => stepSvmLane(ctx, lane))),
        release: () => releaseSettler(ctx.db, caip2, signer.address, holder),
      }
    }),
  ]
}
