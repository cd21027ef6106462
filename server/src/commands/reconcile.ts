import { createInterface } from 'node:readline/promises'
import type { Context } from '../context.ts'
import { sqlState } from '../database/db.ts'
import { listConnections } from '../database/rights.ts'
import { listConnected, openRails } from '../payments/rails.ts'
import { startReconciling } from '../payments/reconcile.ts'
import { type Options, UsageError } from './usage.ts'

/** SQLSTATE of a statement that the role has no right to run. */
const notPermitted = '42501'

/**
 * `reconcile`. It stops payments for minutes, so it runs only where everything is stopped, as it is during a restore, and
 * only after a question. Returns the text to print.
 */
export async function reconcileCommand(ctx: Context, { yes }: Options): Promise<string> {
  const running = [...new Set((await listConnections(ctx.db)).map(({ process }) => process))]
  if (running.length > 0)
    throw new UsageError(
      `Nothing was changed: ${running.join(' and ')} ${running.length === 1 ? 'is' : 'are'} connected to this database. reconcile is for a database that was just restored from a backup, before anything uses it. If it was, stop every serve and work first: systemctl stop 'farthing-serve@*' farthing-work`,
    )
  if (yes !== true && !(await isConfirmed())) throw new UsageError('Nothing was changed.')
  try {
    await startReconciling(ctx, listConnected(openRails(ctx)))
  } catch (error) {
    if (sqlState(error) !== notPermitted) throw error
    throw new UsageError(
      'Nothing was changed: this role may not do that. Connect as farthing_operator: see docs/roles.md.',
    )
  }
  return 'Start work and serve now. Payments are accepted again once nothing sent before the restore can still arrive: in about 7 minutes.'
}

async function isConfirmed(): Promise<boolean> {
  if (!process.stdin.isTTY)
    throw new UsageError(
      'Nothing was changed: this is not a terminal, so the question cannot be asked. To go ahead, add --yes.',
    )
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const answer = await terminal.question(
    'No payment will be accepted for about 7 minutes after the start, and stores will read a new epoch of the event log.\nWas this database restored from a backup? Type yes to reconcile it with the chains: ',
  )
  terminal.close()
  return answer.trim() === 'yes'
}
