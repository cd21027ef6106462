import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import { raiseEpoch } from '../../events/rows.ts'
import type { Rail } from '../rail.ts'
import { listSettlerAddresses } from '../settlers/rows.ts'
import { maxTimeoutSeconds } from '../terms.ts'
import * as rows from './rows.ts'

/**
 * After the database is restored to an earlier point, payments that were claimed and settled since then are missing
 * from it, but not from the chain. `reconcile` runs once, before serving:
 *
 *   nonces    continue from the chain's, so that none is used twice
 *   blocks    of the last hour before the restored tip are read again, and everything after it for the first time
 *   transfers by authorization to one of our wallets are recorded, so that none can be presented again. Those that
 *             carry a checkout's marker, in a transaction from one of our settlers, are credited to that checkout,
 *             unless their nonce is bound to another; the rest are unmatched. Enough providers must tell who sent the
 *             transaction and what is in it
 *   payments  are refused (503) until a block at negative depth is later than any authorization that could have been
 *             claimed before the restore. Only then can no payment from before the restore still be on its way
 *   the log   gets a new epoch, so that stores resume from where the restored log ends
 *
 * At any other time a marker says nothing: every payment that we send has its claim.
 */
export async function startReconciling(ctx: Context, rails: readonly Rail[]): Promise<void> {
  const found = await Promise.all(
    rails.map(async ({ network: { caip2: network }, readNonce, refunds }) => {
      const settlers = await listSettlerAddresses(ctx.db, network)
      const nonces = await Promise.all(
        settlers.map(async (address) => ({ address, nonce: await readNonce(address) })),
      )
      return { network, nonces, areRefundsWatched: refunds?.isPaidOnce !== true }
    }),
  )
  // All or nothing: half of it would stop payments without what lets them begin again.
  await ctx.db.transaction(async (tx) => {
    for (const { network, nonces, areRefundsWatched } of found)
      await rows.beginRestore(tx, network, nonces, areRefundsWatched)
    crashPoint(ctx, 'reconcile-before-epoch')
    await raiseEpoch(tx)
  })
}

/** No authorization that was claimed before a restore stays valid for longer than this after it. */
const lastClaimSeconds = maxTimeoutSeconds + 60

/** Accepts payments again once a block at negative depth is late enough. */
export async function finishReconciling(ctx: Context, network: string, deepTime: Date): Promise<void> {
  await rows.finishRestore(ctx.db, network, deepTime, lastClaimSeconds)
}
