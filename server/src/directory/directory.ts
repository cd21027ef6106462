import { setTimeout as wait } from 'node:timers/promises'
import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import type { Family, Mode } from '../networks.ts'
import { Problem } from '../problems.ts'

/**
 * The directory is a small database that several cells share. It answers one question: which cell owns this wallet or
 * settler? Two cells that are paid to one wallet would both count one transfer, and two that use one settler would both
 * use its nonces, so an owner there is, and only one.
 *
 * Two rows decide: the claim in the directory, whose primary key has one winner, and `directory_state` in the cell's own
 * database, whose `number` is a fence.
 *
 *   to use (claim.ts)     read `number`; claim, or mark our claim as not idle; then, in the transaction that writes the
 *                         wallet or settler, lock `directory_state` for share: if `number` or the epoch has changed
 *                         since, nothing is written
 *   to give up (release.ts) mark the claim as idle when nothing here uses it; 25 hours later raise `number`, look again,
 *                         and delete the claim if it is still marked with that time
 *
 * Raising `number` waits for transactions that hold the share lock, so those are seen when we look again; later ones are
 * refused, or they marked the claim after `number` was raised, so it is not deleted. No clock decides that, and a process
 * that sleeps for a week between two steps does no harm. A crash between claim and transaction leaves a claim that is
 * ours: the repeat finds it, or it is given up as idle.
 *
 * The directory can be restored from a backup, and then it knows less than it did. So it has an epoch, which is raised
 * then (by `directory restored`, or by a cell that notices). Nothing is granted until every cell has asserted for the new
 * epoch all that it uses (assert.ts): first it moves its own `directory_state` to that epoch, as a fence, and then it
 * lists. A claim of an older epoch gives way to a cell that asserts it: its owner had given it up.
 *
 * A cell is one database, which `directory_state.identity` tells from others: the first that adopts a tag is that cell, and
 * whatever is asked or told in its name carries the identity. A backup and a replica have the same one; a copy that runs
 * beside its original shows itself by the count of reports (report.ts).
 *
 * Without DIRECTORY_URL there is none of this, and a deployment is the only cell.
 */
export type Claim = {
  readonly kind: 'wallet' | 'settler'
  readonly scope: string
  /** As it is stored in `wallets.pay_to` and `settlers.address`. */
  readonly address: string
}

/** Why a claim was granted: the wallet signed, an operator said so, or the cell had it before there was a directory. */
export type Basis = 'proof' | 'operator' | 'adopted'

export function walletClaim(mode: Mode, family: Family, payTo: string): Claim {
  return { kind: 'wallet', scope: `${mode} ${family}`, address: payTo }
}

export function settlerClaim(network: string, address: string): Claim {
  return { kind: 'settler', scope: network, address }
}

/** `work` reports once a minute: a cell that misses ten has stopped, and isn't just slow. */
export const quietMinutes = 10

/** How long one question to the directory may take. Whoever registers a wallet waits for it, so they should hear soon. */
const answerMs = 5_000

/** Asks the directory. Throws `unavailable` if it does not answer in time: then it may or may not have done it. */
export async function ask<Result>(
  ctx: Context,
  question: (directory: Database) => Promise<Result>,
): Promise<Result> {
  const { directory } = ctx
  if (!directory) throw unavailable('This process has no DIRECTORY_URL.')
  const timer = new AbortController()
  try {
    return await Promise.race([
      question(directory),
      wait(answerMs, undefined, { signal: timer.signal }).then(() => {
        throw new Problem('unavailable', `It did not answer within ${answerMs / 1_000} seconds.`)
      }),
    ])
  } catch (error) {
    if (error instanceof Problem && error.code === 'unavailable') throw unavailable(error)
    throw error
  } finally {
    timer.abort()
  }
}

/** For callers who may know only that it does not work now; operators find the cause in the log. */
export function unavailable(cause: unknown): Problem {
  return new Problem(
    'unavailable',
    'The directory that says which cell a wallet or settler belongs to cannot be used now. Nothing was changed: repeat the request later.',
    { cause, retryAfterSeconds: 5 },
  )
}
