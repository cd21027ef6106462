import { releaseFollower } from '../../chains/rows.ts'
import { checkSvmChain, type SvmChain } from '../../chains/svm/chain.ts'
import type { Context } from '../../context.ts'
import { releaseSettler } from '../lanes/rows.ts'
import { openCheck } from '../open-check.ts'
import type { Loop, Rail, Settling } from '../rail.ts'
import { tendAccounts } from './accounts.ts'
import { openFeePayers } from './fee-payers.ts'
import { stepSvmLane } from './lane.ts'
import { lookOnce } from './look.ts'
import { preparePayment } from './prepare.ts'
import { openReferences } from './references.ts'
import { openSvmDoor } from './verify.ts'

export function openSvmRail(ctx: Context, chain: SvmChain): Rail {
  return {
    network: chain.network,
    endpoints: chain.rpc.endpoints,
    door: {
      ...openSvmDoor(chain, openFeePayers(ctx)),
      prepare: (terms, payer) => preparePayment(chain, terms, payer),
    },
    countAnswering: async () => (await chain.rpc.callAll<number>('getSlot', [])).length,
    findMistakes: () => checkSvmChain(chain),
    // There are none: what a settler has signed is counted by us alone.
    readNonce: async () => 0,
    settle: (work) => settleSvm(ctx, chain, work),
  }
}

/** One who looks a network, one lane a network and key. */
function settleSvm(ctx: Context, chain: SvmChain, { signers, holder, updateStatus }: Settling): Loop[] {
  const { caip2, blockTimeMs } = chain.network
  const check = openCheck(ctx, caip2, () => checkSvmChain(chain))
  const own = signers.filter((signer) => signer.family === 'SOLANA')
  const lookForReferences = openReferences(ctx, chain, updateStatus)
  return [
    {
      name: `accounts ${caip2}`,
      restMs: 1_000,
      run: async () => (await check()) && (await tendAccounts(ctx, { chain, signer: own[0] })),
    },
    {
      name: `look ${caip2}`,
      restMs: blockTimeMs,
      run: async () => (await check()) && (await lookOnce(ctx, chain, holder, updateStatus)) === true,
      release: () => releaseFollower(ctx.db, caip2, holder),
    },
    {
      name: `references ${caip2}`,
      restMs: 1_000,
      run: async () => (await check()) && (await lookForReferences()),
    },
    ...own.map((signer): Loop => {
      const lane = { chain, signer, holder, updateStatus }
      return {
        name: `lane ${caip2} ${signer.address}`,
        restMs: 250,
        wakeOn: 'claims',
        run: async () => (await check()) && (await stepSvmLane(ctx, lane)) === true,
        release: () => releaseSettler(ctx.db, caip2, signer.address, holder),
      }
    }),
  ]
}
