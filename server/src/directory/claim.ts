import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import type { Transaction } from '../database/db.ts'
import { Problem } from '../problems.ts'
import { ask, type Basis, type Claim, unavailable } from './directory.ts'
import * as rows from './rows.ts'
import { holdState, readState } from './state-rows.ts'

/** What a process may use, as long as the fence stands where it was; null without a directory. */
export type Hold = { readonly number: string; readonly epoch: string } | null

/**
 * Claims something for this cell, or marks its claim as used; with the basis null it only does the latter. The caller
 * keeps the hold in the transaction that makes use of it. "free" means that nobody has it, "elsewhere" that another cell
 * does. Throws `unavailable` if the directory does not answer, or grants nothing now.
 */
export async function claimHere(
  ctx: Context,
  claim: Claim,
  basis: Basis | null,
): Promise<Hold | 'free' | 'elsewhere'> {
  if (!ctx.directory) return null
  const { number, epoch, identity } = await readState(ctx.db)
  if (epoch === null || identity === null) throw unavailable('This cell has not adopted it: directory adopt')
  const self = { tag: ctx.config.cell, identity }
  crashPoint(ctx, 'hold-before')
  const granted = await ask(ctx, (directory) =>
    basis === null
      ? rows.touchClaim(directory, claim, self)
      : rows.insertClaim(directory, claim, self, basis),
  ).catch((error) => refuseUnknown(error))
  crashPoint(ctx, 'hold-after')
  if (granted !== null) return { number, epoch: granted }
  const owner = await ask(ctx, (directory) => rows.readOwner(directory, claim, self))
  if (!owner.isKnown) throw refuseUnknown(null)
  if (owner.isOther) throw unavailable(`Another database is cell ${self.tag} there: directory adopt`)
  if (owner.isDoubled) throw unavailable(`A copy of this database reports beside it: see the log of work`)
  if (!owner.isReady) throw unavailable('It waits until every cell has told what it uses: directory list')
  if (owner.cell === null && basis === null) return 'free'
  // Given up since we asked, or ours since then: the repeat finds out.
  if (owner.cell === null || owner.cell === self.tag) throw unavailable('The claim changed meanwhile.')
  return 'elsewhere'
}

/** Throws `unavailable` if what was claimed may have been given up since. Call it in the transaction that makes use of it. */
export async function keepHold(tx: Transaction, hold: Hold): Promise<void> {
  const state = await holdState(tx)
  if (state.epoch === (hold?.epoch ?? null) && (hold === null || state.number === hold.number)) return
  throw unavailable(
    hold === null
      ? 'This deployment shares a directory, and this process was started without DIRECTORY_URL.'
      : 'This cell gave up claims or asserted them meanwhile.',
  )
}

/** The refusal that callers may read. It does not say which cell: that would tell strangers where a store is. */
export function elsewhere(address: string): Problem {
  return new Problem(
    'wallet_elsewhere',
    `${address} is in use in another cell of this deployment. A wallet is paid in one cell only.`,
  )
}

/** SQLSTATE of a claim by a cell that the directory does not know. */
function refuseUnknown(error: unknown): never {
  const isUnknown = error === null || (error instanceof Error && 'code' in error && error.code === '23503')
  throw isUnknown ? unavailable('It does not know this cell: directory adopt') : error
}
