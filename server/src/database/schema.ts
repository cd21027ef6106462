import { type Database, isLockTimeout, isStatementTimeout, type Transaction } from './db.ts'

/**
 * While a change waits for a table, every later statement on that table waits behind it. Those give up after 5 seconds,
 * so the change gives up well before them.
 */
const lockTimeoutMs = 2_000
/** Any constant that nothing else in this database uses as an advisory lock. */
const lock = 402_402_402

/** Thrown when the schema does not match this program, or cannot be changed now. The message ends with what to do. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError'
  readonly says: string
  readonly fix: string

  constructor(says: string, fix: string, cause?: unknown) {
    super(`${says} ${fix}`, { cause })
    this.says = says
    this.fix = fix
  }
}

/** What to do if our roles lack rights that only a superuser can grant. docs/roles.md has the command for containers. */
export const handOver =
  'Run this in Farthing’s database as a superuser, then migrate again: psql -d farthing < server/rights/owner.sql'

/** Changes the schema in one transaction, one process at a time. If a time limit stops it, the error says `name`. */
export async function changeSchema(
  db: Database,
  name: string,
  statementSeconds: number,
  change: (tx: Transaction) => Promise<void>,
): Promise<void> {
  await db.transaction(async (tx) => {
    // A second process waits for the first, however long its migration takes. Nothing waits behind it.
    await tx.script('set local lock_timeout = 0; set local statement_timeout = 0')
    await tx.query('select pg_advisory_xact_lock($1)', [lock])
    await tx.script(
      `set local lock_timeout = ${lockTimeoutMs}; set local statement_timeout = ${statementSeconds * 1_000}`,
    )
    await change(tx).catch((error) => refuseLimits(error, name, statementSeconds))
  })
}

/** Explains a change that was stopped by one of its time limits. */
function refuseLimits(error: unknown, name: string, statementSeconds: number): never {
  if (isLockTimeout(error))
    throw new SchemaError(
      `${name} was stopped because a table it changes was in use for ${lockTimeoutMs / 1_000} seconds. Nothing was changed.`,
      'Run it again. If it happens again, find the transaction that stays open: select pid, xact_start, query from pg_stat_activity order by xact_start',
      error,
    )
  if (isStatementTimeout(error))
    throw new SchemaError(
      `${name} was stopped because a statement took longer than ${statementSeconds} seconds. Nothing was changed.`,
      'Payments wait while it runs. Choose a quiet time and allow it more seconds, for example: MIGRATION_STATEMENT_SECONDS=600 farthing-admin migrate',
      error,
    )
  throw error
}
