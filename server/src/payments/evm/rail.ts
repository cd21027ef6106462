import type { PaymentRequirements } from '@farthing/sdk'
import { readNextNonces } from '../../chains/evm/accounts.ts'
import { type Chain, openChain, readHasCode } from '../../chains/evm/chain.ts'
import { checkChain } from '../../chains/evm/check.ts'
import { evmCosts } from '../../chains/evm/costs.ts'
import { followNext } from '../../chains/evm/follower.ts'
import { probeChain } from '../../chains/evm/probe.ts'
import { openSimulate } from '../../chains/evm/simulate.ts'
import { type Hex, parseHash } from '../../chains/hex.ts'
import { openFailures } from '../../chains/note-failures.ts'
import { releaseFollower } from '../../chains/rows.ts'
import { countAnswering, RpcUnavailableError } from '../../chains/rpc.ts'
import { nodesOf } from '../../config/settings.ts'
import type { Context } from '../../context.ts'
import { openBatcher } from '../../database/batch.ts'
import type { EvmNetwork } from '../../networks.ts'
import { remember } from '../../remember.ts'
import { untilAwake } from '../looks.ts'
import { type Loop, maxTimeoutSeconds, type Offer, openCheck, type Rail, type Settling } from '../rail.ts'
import { openSteps } from '../settlers/lane.ts'
import { releaseSettler } from '../settlers/rows.ts'
import { reserveAmount } from '../transfers/reserve.ts'
import { buryDead } from './bury-dead.ts'
import { openListener } from './credit-blocks.ts'
import { deployBatcher } from './deploy.ts'
import { stepLane } from './lane.ts'
import { lookUpAsked, lookUpPasted, reverseGone } from './look-up.ts'
import { findSent, openRefunds } from './refund.ts'
import { reserveCost } from './tend.ts'
import { type EvmVerifier, findMismatch, type HasCode, verifyPayment } from './verify.ts'

/** Simulations run from this address: the token accepts a transfer from any settler. */
const nobody = '0x0000000000000000000000000000000000000001'
/**
 * For this long, an address that had no code counts as having none. A signature by its key is checked before, and code
 * that appears later is found before anything is sent.
 */
const codeRememberedMs = 30_000
const entriesMax = 50_000
/** How often the database is asked whether a chain has work. This also ends the pause of an idle loop. */
const lookMs = 1_000
/** Gas of a settlement that is sent alone, rounded up. */
const settlementGas = 100_000n

/** EVM chains: EIP-3009 authorizations, sent by lanes and credited from their logs. */
export function openEvmRail(ctx: Context, network: EvmNetwork): Rail {
  const nodes = nodesOf(ctx.config, network.id)
  const chain = openChain(network, nodes, ctx.now, openFailures(ctx, network.id, nodes))
  const verifier = openVerifier(ctx, chain)
  return {
    network,
    providers: chain.rpc.providers.length,
    hasSettlers: true,
    verifier: {
      findMismatch: async (...asked) => findMismatch(verifier, ...asked),
      verify: (checkoutId, offers, ...asked) => verifyPayment(verifier, { checkoutId, offers }, ...asked),
    },
    toTerms: async (_checkoutId, offer) => toTerms(network, offer),
    async reserve(wanted, headAgeSecondsMax) {
      // A transfer from before the reservation does not count, and the head shows which transfers those are.
      if (!network.isLocal) await untilAwake(ctx, network.caip2)
      return await reserveAmount(ctx, network, wanted, headAgeSecondsMax)
    },
    parseTransactionHash: parseHash,
    sent: { parse: parseHash, find: (sent) => findSent(ctx, chain, sent) },
    settlementCost: (baseFee) => settlementGas * (baseFee + 1n),
    reserveCost: (baseFee, dataFee, waiting) => reserveCost(network, baseFee, dataFee, waiting),
    // Gas on a local chain costs nothing.
    storeCostPerDay: network.isLocal ? null : ctx.config.storeGasPerDay,
    unprovenCostPerDay: network.isLocal
      ? null
      : least(ctx.config.unprovenGasPerDay, ctx.config.storeGasPerDay),
    isInOrder: true,
    countAnswering: () => countAnswering(chain.rpc, 'eth_blockNumber'),
    findDifferences: () => checkChain(chain),
    probe: () => probeChain(network, nodes, ctx.now),
    nodeCosts: evmCosts,
    listLimits: chain.rpc.listLimits,
    deploy: (signers) => deployBatcher(ctx, chain, signers),
    async readNonce(account) {
      const [agreed] = await readNextNonces(chain, [account])
      // A settler that starts at a wrong nonce could never send.
      if (!agreed?.isWitnessed)
        throw new RpcUnavailableError('Too few nodes agree about the account’s nonce.')
      return agreed.nonce
    },
    refunds: openRefunds(verifier),
    settle: (work) => settle(ctx, chain, work),
  }
}

export function openVerifier(ctx: Context, chain: Chain): EvmVerifier {
  return { chain, simulate: openSimulate(chain, nobody), hasCode: openHasCode(ctx, chain) }
}

/** Null if the token has since been removed from networks.ts. */
function toTerms(network: EvmNetwork, offer: Offer): PaymentRequirements | null {
  const extra = network.assets.find(({ address }) => address === offer.asset)?.domain
  return extra ? { scheme: 'exact', ...offer, maxTimeoutSeconds, extra } : null
}

function openHasCode(ctx: Context, chain: Chain): HasCode {
  const read = openBatcher<Hex, boolean>({
    run: (addresses) => readHasCode(chain, addresses),
    runAlone: async (address) => (await readHasCode(chain, [address]))[0] ?? false,
    itemsMax: 100,
    inFlightMax: 4,
  })
  const remembered = remember(read, { forMs: codeRememberedMs, entriesMax, now: ctx.now })
  return (address, when) => (when === 'now' ? read(address) : remembered.get(address))
}

/**
 * Per network, one loop each to follow the chain, bury dead authorizations, reverse transfers that the chain removed,
 * and look up pasted transactions; plus one lane per key.
 */
function settle(ctx: Context, chain: Chain, { signers, holder, updateStatus }: Settling): Loop[] {
  const { caip2 } = chain.network
  const listener = openListener(ctx, chain, updateStatus)
  const check = openCheck(ctx, chain.network.id, () => checkChain(chain))
  return [
    {
      name: `follow ${caip2}`,
      restMs: lookMs,
      wakeOn: 'claims',
      run: openFollow(async () => ((await check()) ? await followNext(ctx, chain, holder, listener) : null)),
      release: () => releaseFollower(ctx.db, caip2, holder),
    },
    {
      name: `bury ${caip2}`,
      restMs: lookMs,
      run: async () => (await buryDead(ctx, chain, updateStatus)) > 0,
    },
    {
      name: `reverse ${caip2}`,
      restMs: lookMs,
      run: async () => (await reverseGone(ctx, chain, updateStatus)) > 0,
    },
    {
      name: `look up ${caip2}`,
      restMs: lookMs,
      wakeOn: 'claims',
      run: async () => (await lookUpPasted(ctx, chain, updateStatus)) > 0,
    },
    {
      name: `look-up-asked ${caip2}`,
      restMs: 5_000,
      run: async () => (await lookUpAsked(ctx, chain, updateStatus)) > 0,
    },
    ...signers
      .filter((signer) => signer.family === 'EVM')
      .map((signer): Loop => {
        const lane = { chain, signer, holder, updateStatus }
        const steps = openSteps(ctx, chain.network.id, signer)
        return {
          name: `lane ${caip2} ${signer.address}`,
          restMs: 250,
          wakeOn: 'claims',
          run: async () => (await check()) && (await steps(() => stepLane(ctx, lane))),
          release: () => releaseSettler(ctx.db, caip2, signer.address, holder),
        }
      }),
  ]
}

/** Ends the loop's pause when the next look at the chain is due. */
function openFollow(follow: () => Promise<number | null>): Loop['run'] {
  let due: NodeJS.Timeout | undefined
  return async (again) => {
    clearTimeout(due)
    const restMs = await follow()
    if (restMs !== null && restMs > 0 && restMs < lookMs) due = setTimeout(again, restMs).unref()
    return restMs !== null && restMs <= 0
  }
}

/** Null means no limit. */
function least(one: bigint | null, other: bigint | null): bigint | null {
  if (one === null || other === null) return one ?? other
  return one < other ? one : other
}
