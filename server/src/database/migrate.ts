import { readdir, readFile } from 'node:fs/promises'
import { firstCell } from '../ids.ts'
import { checkCell, writeCell } from './cell.ts'
import type { Database, Transaction } from './db.ts'
import { applyRights, type RightsState, refuseMissingRoles } from './rights.ts'
import { changeSchema, handOver, SchemaError } from './schema.ts'

/**
 * Numbered, forward-only SQL files. Any number of processes may start at once: each migration runs in one transaction
 * that first takes a lock and then checks whether another process was faster. Applied files must never change: their
 * text is compared. A newer schema is accepted (the old version sees one during a rolling upgrade) unless a newer
 * migration begins with the comment "-- breaking". We use no migration tool. One would add down migrations, which are
 * untested when they are needed, and those that we know don't notice a changed file, take no lock, or keep the schema
 * in a language other than SQL.
 */
const ownFolder = new URL('../../migrations/', import.meta.url)
/**
 * The same limit as for any other statement. Payments wait while a migration runs, and payers do not wait longer than
 * this.
 */
const statementSecondsDefault = 30

type Migration = { readonly version: number; readonly name: string; readonly sql: string }
type Applied = { version: number; name: string; sql: string; breaking: boolean }

export type Migrated = {
  /** The names of the files that were applied. */
  readonly applied: readonly string[]
  /** Whether the database roles have their rights. */
  readonly rights: RightsState
}

export async function migrate(
  db: Database,
  { statementSeconds = statementSecondsDefault, folder = ownFolder, cell = firstCell } = {},
): Promise<Migrated> {
  if (!(await mayMigrate(db)))
    throw new SchemaError(
      'The role in DATABASE_URL may not change the schema.',
      'Connect as the role that owns the tables: see docs/roles.md.',
    )
  if (folder === ownFolder) await refuseMissingRoles(db)
  const migrations = await readMigrations(folder)
  const applied: string[] = []
  await changeSchema(db, 'The table of migrations', statementSeconds, prepare)
  for (const migration of migrations) {
    await changeSchema(db, migration.name, statementSeconds, async (tx) => {
      const [known] = await tx.query<Applied>('select * from schema_migrations where version = $1', [
        migration.version,
      ])
      if (known) return
      await tx.script(migration.sql)
      await tx.query('insert into schema_migrations (version, name, sql, breaking) values ($1, $2, $3, $4)', [
        migration.version,
        migration.name,
        migration.sql,
        migration.sql.startsWith('-- breaking'),
      ])
      applied.push(migration.name)
    })
  }
  await checkSchema(db, folder)
  if (folder !== ownFolder) return { applied, rights: 'unchanged' }
  await changeSchema(db, 'The cell’s tag', statementSeconds, (tx) => writeCell(tx, cell))
  await checkCell(db, cell)
  return { applied, rights: await applyRights(db, statementSeconds) }
}

/** Whether this role may change the schema. In a deployment, the roles of serve and work may not. */
export async function mayMigrate(db: Database): Promise<boolean> {
  const [row] = await db.query<{ may: boolean }>("select has_schema_privilege('public', 'create') as may")
  return row?.may ?? false
}

/** Throws unless the schema is this program's, or a newer one that it can still use. */
export async function checkSchema(db: Database, folder = ownFolder): Promise<void> {
  const [table] = await db.query<{ role: string; isThere: boolean; maySee: boolean }>(
    `select current_user as role, count(c.oid) > 0 as "isThere",
       coalesce(bool_and(has_schema_privilege('public', 'usage') and has_table_privilege(c.oid, 'select')), false) as "maySee"
     from pg_class c where c.relname = 'schema_migrations' and c.relnamespace = 'public'::regnamespace`,
  )
  if (table?.isThere && !table.maySee)
    throw new SchemaError(`${table.role} may not read the schema, although it is there.`, handOver)
  const applied = table?.isThere
    ? await db.query<Applied>('select version, name, sql, breaking from schema_migrations order by version')
    : []
  const known = await readMigrations(folder)
  for (const migration of known) {
    const row = applied.find(({ version }) => version === migration.version)
    if (!row) throw new SchemaError(`The schema lacks ${migration.name}.`, 'Run: farthing-admin migrate')
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
