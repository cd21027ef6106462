import { setTimeout as wait } from 'node:timers/promises'
import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import type { Family, Mode } from '../networks.ts'
import { Problem } from '../problems.ts'

/**
 * The directory is a small database that several cells share. It answers one question: which cell owns this wallet or
 * settler? Two cells that are paid to one wallet would both count one transfer, and two that send from one settler would
 * both use its nonces, so each has exactly one owner.
 *
 * Only a proof or an operator makes a cell an owner, and it stays one until an operator releases it there. Two rows
 * decide: the owner in the directory, whose primary key has one winner, and `directory_state` in the cell's own database,
 * which has a fence, a number that only grows.
 *
 *   to use (own.ts)       read the fence; ask the directory, which counts what it grants; then, in the transaction that
 *                         writes the wallet or settler, lock `directory_state` for share: if the fence was raised since,
 *                         nothing is written
 *   to release (own.ts)   read the count of grants; raise the fence; look whether anything uses it; delete the owner if
 *                         the count is still the same
 *
 * Raising the fence waits for transactions that hold the share lock, so the look that follows sees what they wrote. A
 * process that read the fence before it was raised is refused. A process that reads it afterwards also asks afterwards: it
 * changes the count, or finds no owner. So a process may sleep for a week between two steps, or die at any of them. At
 * worst that leaves an owner without a use. It is harmless, and a repeat of the step finds it.
 *
 * The directory, or a cell, may be restored from a backup, and a cell's database may be copied. Every report (report.ts)
 * draws a stamp that is higher than the last by a random step. It writes the stamp to the cell's database and then to the
 * directory. The directory grants something only to a cell that has the same stamp:
 *
 *   the directory's is lower    the directory was restored and may have forgotten owners. Its generation is raised:
 *                               nothing is granted until every cell has adopted it again
 *   the cell's is lower         its database was restored, or a copy of it runs: the cell is contested, and is granted
 *                               nothing until an operator decides, by adopting, which database is the cell
 *
 * By adopting (adopt.ts), an operator declares that this database is the cell and owns everything that it uses. The cell
 * raises its fence before it lists what it uses, so nothing is missed. Owners of earlier generations give way to it.
 *
 * A cell is one database. Its `identity` tells it from others with the same tag; a backup and a copy keep the identity.
 * Without DIRECTORY_URL, a deployment is the only cell and none of this applies.
 */
export type Ownership = {
  readonly kind: 'wallet' | 'settler'
  readonly scope: string
  /** As it is stored in `wallets.pay_to` and `settlers.address`. */
  readonly address: string
}

/** What made its cell the owner: the wallet signed, an operator said so, or the cell used it when it adopted. */
export type Basis = 'proof' | 'operator' | 'adopted'

export function walletOwnership(mode: Mode, family: Family, payTo: string): Ownership {
  return { kind: 'wallet', scope: `${mode} ${family}`, address: payTo }
}

export function settlerOwnership(network: string, address: string): Ownership {
  return { kind: 'settler', scope: network, address }
}

export function keyOf({ kind, scope, address }: Ownership): string {
  return `${kind} ${scope} ${address}`
}

/** Those of `all` that are not in `some`. */
export function without<One extends Ownership>(all: readonly One[], some: readonly Ownership[]): One[] {
  const known = new Set(some.map(keyOf))
  return all.filter((each) => !known.has(keyOf(each)))
}

/**
 * The wallets and settlers that this cell uses, as higher floors know them. A wallet is in use if it is not retired, if an
 * owner can undo its retirement, or if it may still be paid. A settler is in use if it is not retired or has an unmined
 * transaction.
 */
export type Uses = {
  /** All of it, a page at a time. */
  pages(): AsyncIterable<readonly Ownership[]>
  /** Which of these are used. */
  find(some: readonly Ownership[]): Promise<readonly Ownership[]>
  /** Records whether another cell owns them, so that they are put to no new use here. */
  writeElsewhere(some: readonly Ownership[], isElsewhere: boolean): Promise<void>
  /** Records that this cell releases them: from then on its stores can't decide about payments there, nor undo a change. */
  writeReleased(some: readonly Ownership[]): Promise<void>
}

/** `work` reports once a minute: a cell that misses ten has stopped, and isn't just slow. */
export const quietMinutes = 10

/** How long one question to the directory may take: a person who registers a wallet waits for it. */
const answerMs = 5_000

export function directoryOf({ directory }: Context): Database {
  if (!directory) throw unavailable('This process has no DIRECTORY_URL.')
  return directory
}

/** Asks the directory. Throws `unavailable` if it does not answer in time: then the statement may or may not have run. */
export async function ask<Result>(
  ctx: Context,
  question: (directory: Database) => Promise<Result>,
): Promise<Result> {
  const directory = directoryOf(ctx)
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

/** For work that goes on without the directory: if it does not answer, logs that and returns null. */
export async function orAway<Result>(ctx: Context, asking: Promise<Result>): Promise<Result | null> {
  return await asking.catch((error) => {
    if (!(error instanceof Problem) || error.code !== 'unavailable') throw error
    ctx.log.warn(
      { err: error.cause ?? error },
      'the directory does not answer; everything works except adding wallets and settlers',
    )
    return null
  })
}

/** Tells callers only that the directory cannot be used now. Operators find the cause in the log. */
export function unavailable(cause: unknown): Problem {
  return new Problem(
    'unavailable',
    'The directory that says which cell a wallet or settler belongs to cannot be used now. Nothing was changed: repeat the request later.',
    { cause, retryAfterSeconds: 5 },
  )
}
