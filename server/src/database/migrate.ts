import { readdir, readFile } from 'node:fs/promises'
import { type Database, isLockTimeout, isStatementTimeout, type Transaction } from './db.ts'

/**
 * Numbered, forward-only SQL files. Any number of processes may start at once: each migration runs in one transaction
 * that first takes a lock and then checks whether another process was faster. Applied files must never change: their
 * text is compared. A newer schema is accepted (the old version sees one during a rolling upgrade) unless a newer
 * migration begins with the comment "-- breaking".
 */
const ownFolder = new URL('../../migrations/', import.meta.url)
/**
 * While a migration waits for a table, every later statement on that table waits behind it. Those give up after 5
 * seconds, so the migration gives up well before them.
 */
const lockTimeoutMs = 2_000
/** As for any other statement: payers wait no longer for an answer. */
const statementSecondsDefault = 30
/** Any constant that nothing else in this database uses as an advisory lock. */
const lock = 402_402_402

type Migration = { readonly version: number; readonly name: string; readonly sql: string }
type Applied = { version: number; name: string; sql: string; breaking: boolean }

/** Thrown when the schema does not match this program, or cannot be migrated now. The message ends with what to do. */
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

/** Returns the names of the files that it applied. */
export async function migrate(
  db: Database,
  { statementSeconds = statementSecondsDefault, folder = ownFolder } = {},
): Promise<string[]> {
  const migrations = await readMigrations(folder)
  const done: string[] = []
  for (const migration of [null, ...migrations]) {
    await db.transaction(async (tx) => {
      // A second process waits for the first, however long its migration takes. Nobody waits behind it.
      await tx.script('set local lock_timeout = 0; set local statement_timeout = 0')
      await tx.query('select pg_advisory_xact_lock($1)', [lock])
      await tx.script(
        `set local lock_timeout = ${lockTimeoutMs}; set local statement_timeout = ${statementSeconds * 1_000}`,
      )
      if (migration === null) return await prepare(tx)
      const [applied] = await tx.query<Applied>('select * from schema_migrations where version = $1', [
        migration.version,
      ])
      if (applied) return
      await tx.script(migration.sql).catch((error) => refuseLimits(error, migration, statementSeconds))
      await tx.query('insert into schema_migrations (version, name, sql, breaking) values ($1, $2, $3, $4)', [
        migration.version,
        migration.name,
        migration.sql,
        migration.sql.startsWith('-- breaking'),
      ])
      done.push(migration.name)
    })
  }
  await checkSchema(db, folder)
  return done
}

/** Explains a migration that was stopped by one of its time limits. */
function refuseLimits(error: unknown, { name }: Migration, statementSeconds: number): never {
  if (isLockTimeout(error))
    throw new SchemaError(
      `${name} was stopped because a table it changes was in use for ${lockTimeoutMs / 1_000} seconds. Nothing was changed.`,
      'Run it again. If it happens again, find the transaction that stays open: select pid, xact_start, query from pg_stat_activity order by xact_start',
      error,
    )
  if (isStatementTimeout(error))
    throw new SchemaError(
      `${name} was stopped because a statement took longer than ${statementSeconds} seconds. Nothing was changed.`,
      'It keeps payments waiting while it runs. Choose a quiet time and allow it more, for example: MIGRATION_STATEMENT_SECONDS=600 npm run server migrate',
      error,
    )
  throw error
}

/** Throws unless the schema is this program's, or a newer one that it can still use. */
export async function checkSchema(db: Database, folder = ownFolder): Promise<void> {
  const [table] = await db.query<{ found: string | null }>(
    "select to_regclass('schema_migrations')::text as found",
  )
  const applied = table?.found
    ? await db.query<Applied>('select version, name, sql, breaking from schema_migrations order by version')
    : []
  const known = await readMigrations(folder)
  for (const migration of known) {
    const row = applied.find(({ version }) => version === migration.version)
    if (!row) throw new SchemaError(`The schema lacks ${migration.name}.`, 'Run: npm run server migrate')
    if (row.sql !== migration.sql) {
      throw new SchemaError(
        `${migration.name} differs from the file that was applied.`,
        'Applied migrations must not change: restore that file.',
      )
    }
  }
  const tooNew = applied.find(({ version, breaking }) => breaking && version > known.length)
  if (tooNew)
    throw new SchemaError(
      `The schema has ${tooNew.name}, which this version does not support.`,
      'Upgrade first.',
    )
}

async function prepare(tx: Transaction): Promise<void> {
  await tx.script(`create table if not exists schema_migrations (
    version integer primary key,
    name text not null,
    sql text not null,
    breaking boolean not null,
    applied_at timestamptz not null default now()
  )`)
}

async function readMigrations(folder: URL): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()
  return await Promise.all(
    names.map(async (name, i) => {
      const version = Number.parseInt(name, 10)
      if (version !== i + 1)
        throw new SchemaError(
          `${name} does not follow the migration before it.`,
          'Number migrations without gaps.',
        )
      return { version, name, sql: await readFile(new URL(name, folder), 'utf8') }
    }),
  )
}
