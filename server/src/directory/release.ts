import type { Context } from '../context.ts'
import { Problem } from '../problems.ts'
import { ask, type Claim } from './directory.ts'
import * as rows from './rows.ts'
import { raiseFence, readState } from './state-rows.ts'
import { keyOf, type Uses, without } from './uses.ts'

/**
 * An hour longer than an owner can undo a change of wallet, which puts a retired wallet to use again without asking the
 * directory.
 */
const idleHours = 25
/** Per run, every ten minutes: a hundred thousand claims are looked at within four hours. */
const claimsPerRun = 5_000

/**
 * Gives up claims that this cell has had no use for. Nobody else does: only the cell knows what it uses. One that is
 * marked as idle is looked at again when its time is over; whoever claims it before then takes the mark away.
 */
export async function releaseClaims(
  ctx: Context,
  uses: Uses,
  turn: { after: Claim | null },
): Promise<number> {
  const { identity } = await readState(ctx.db)
  if (identity === null) return 0
  const self = { tag: ctx.config.cell, identity }
  try {
    const page = await ask(ctx, (directory) =>
      rows.listOwnClaims(directory, self, turn.after, idleHours, claimsPerRun),
    )
    turn.after = page.length < claimsPerRun ? null : (page.at(-1) ?? null)
    const due = page.filter(({ idleAt, isOver }) => idleAt === null || isOver)
    const idle = without(due, await uses.find(due))
    const busy = without(due, idle)
    const mark = async (claims: readonly rows.OwnClaim[], isIdle: boolean) => {
      if (claims.length > 0) await ask(ctx, (directory) => rows.writeIdle(directory, self, claims, isIdle))
    }
    await mark(
      idle.filter(({ idleAt }) => idleAt === null),
      true,
    )
    await mark(
      busy.filter(({ idleAt }) => idleAt !== null),
      false,
    )
    const over = idle.filter(({ isOver }) => isOver)
    return over.length === 0 ? 0 : await release(ctx, uses, self, over)
  } catch (error) {
    // The report of the same minute says that the directory does not answer.
    if (error instanceof Problem && error.code === 'unavailable') return 0
    throw error
  }
}

async function release(
  ctx: Context,
  uses: Uses,
  self: rows.Self,
  over: readonly rows.OwnClaim[],
): Promise<number> {
  await raiseFence(ctx.db)
  const unused = without(over, await uses.find(over))
  // Noted first: once it is given up, another cell may be paid there. The next run finishes what a crash left between.
  await uses.writeReleased(unused)
  const gone = await ask(ctx, (directory) => rows.deleteClaims(directory, self, unused))
  for (const claim of gone)
    ctx.log.info({ claim: keyOf(claim) }, 'gave up a wallet or settler that this cell does not use')
  return gone.length
}
