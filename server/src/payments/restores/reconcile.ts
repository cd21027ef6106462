import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import { raiseEpoch } from '../../events/rows.ts'
import type { Rail } from '../rail.ts'
import { listSettlerAddresses } from '../settlers/rows.ts'
import { maxTimeoutSeconds } from '../terms.ts'
import * as rows from './rows.ts'

/**
 * After the database was put back to an earlier point, what was claimed and settled since is missing from it, but not
 * from the chain. `reconcile` is run once, before serving:
 *
 *   nonces    go on from what the chain has seen, so that none is used twice
 *   blocks    of the last hour before the restored tip are read again, and everything after it for the first time
 *   transfers by authorization to a wallet of ours are recorded, so that none can be presented again; those that carry
 *             a checkout's marker, in a transaction of a settler of ours, are credited to it; the rest are unmatched
 *   payments  are refused (503) until a block at negative depth is later than any authorization that could have been
 *             claimed before the restore: only then is nothing of that time still on its way
 *   the log   gets a new epoch, so that stores resume from where the restored log ends
 *
 * Markers count whenever they are seen, not only then.
 */
export async function startReconciling(ctx: Context, rails: readonly Rail[]): Promise<void> {
  for (const {
    network: { caip2: network },
    readNonce,
  } of rails) {
    const settlers = await listSettlerAddresses(ctx.db, network)
    const nonces = await Promise.all(
      settlers.map(async (address) => ({ address, nonce: await readNonce(address) })),
    )
    await ctx.db.transaction((tx) => rows.beginRestore(tx, network, nonces))
  }
  crashPoint(ctx, 'reconcile-before-epoch')
  await raiseEpoch(ctx.db)
}

/** Nothing that was claimed before a restore is valid for longer than this after it. */
const lastClaimSeconds = maxTimeoutSeconds + 60

/** Ends the waiting once a deep block is late enough. */
export async function finishReconciling(ctx: Context, network: string, deepTime: Date): Promise<void> {
  await rows.finishRestore(ctx.db, network, deepTime, lastClaimSeconds)
}
