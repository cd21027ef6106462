import type { Chain, Hex } from '../chains/chain.ts'
import { checkChain } from '../chains/check.ts'
import { followOnce } from '../chains/follower.ts'
import { releaseFollower } from '../chains/rows.ts'
import { openSvmChains } from '../chains/svm/chain.ts'
import type { Context } from '../context.ts'
import { buryDead, openListener } from './credits/resolve.ts'
import { openChains, openDoor } from './doors.ts'
import { stepLane } from './lanes/lane.ts'
import { releaseSettler } from './lanes/rows.ts'
import { openCheck } from './open-check.ts'
import type { Loop, Rail, Settling } from './rail.ts'
import { openSvmRail } from './svm/rail.ts'
import { reverseGone } from './transfers/gone.ts'
import { lookUpPasted } from './transfers/look-up.ts'
import { findMismatch, verifyPayment } from './verify.ts'

/** The enabled networks that have nodes. */
export function openRails(ctx: Context): Rail[] {
  return [
    ...openChains(ctx).map((chain) => openEvmRail(ctx, chain)),
    ...openSvmChains(ctx).map((chain) => openSvmRail(ctx, chain)),
  ]
}

function openEvmRail(ctx: Context, chain: Chain): Rail {
  const door = openDoor(ctx, chain)
  return {
    network: chain.network,
    endpoints: chain.rpc.endpoints,
    door: {
      findMismatch: async (...asked) => findMismatch(door, ...asked),
      verify: (...asked) => verifyPayment(door, ...asked),
    },
    countAnswering: async () => (await chain.rpc.callAll<Hex>('eth_blockNumber', [])).length,
    findMistakes: () => checkChain(chain),
    readNonce: async (account) =>
      Number.parseInt(await chain.rpc.call<Hex>('eth_getTransactionCount', [account, 'pending']), 16),
    settle: (work) => settleEvm(ctx, chain, work),
  }
}

/** One follower and one grave-digger a network, one lane a network and key. */
function settleEvm(ctx: Context, chain: Chain, { signers, holder, updateStatus }: Settling): Loop[] {
  const { caip2, blockTimeMs } = chain.network
  const listener = openListener(ctx, chain, updateStatus)
  const check = openCheck(ctx, caip2, () => checkChain(chain))
  return [
    {
      name: `follow ${caip2}`,
      // The next block is seen an eighth of its time after it came.
      restMs: blockTimeMs / 8,
      run: async () => (await check()) && (await followOnce(ctx, chain, holder, listener)) === true,
      release: () => releaseFollower(ctx.db, caip2, holder),
    },
    {
      name: `bury ${caip2}`,
      restMs: blockTimeMs,
      run: async () => (await buryDead(ctx, chain, updateStatus)) > 0,
    },
    {
      name: `reverse ${caip2}`,
      restMs: blockTimeMs,
      run: async () => (await reverseGone(ctx, chain, updateStatus)) > 0,
    },
    {
      name: `look up ${caip2}`,
      restMs: 1_000,
      wakeOn: 'claims',
      run: async () => (await lookUpPasted(ctx, chain, updateStatus)) > 0,
    },
    ...signers
      .filter((signer) => signer.family === 'EVM')
      .map((signer): Loop => {
        const lane = { chain, signer, holder, updateStatus }
        return {
          name: `lane ${caip2} ${signer.address}`,
          restMs: 250,
          wakeOn: 'claims',
          run: async () => (await check()) && (await stepLane(ctx, lane)) === true,
          release: () => releaseSettler(ctx.db, caip2, signer.address, holder),
        }
      }),
  ]
}
