import type { Database } from './db.ts'

type RightsFound = {
  /** Whether the roles exist, and whether we may make them. */
  readonly exist: boolean
  readonly may: boolean
  /** Whether each of them has been granted anything. */
  readonly isGranted: boolean
  /** What was last granted. */
  readonly applied: string | null
}

export async function readRights(db: Database): Promise<RightsFound> {
  const [found] = await db.query<RightsFound>(
    `select count(r.oid) = 4 as exist,
       (select rolsuper or rolcreaterole from pg_roles where rolname = current_user) as may,
       coalesce(bool_and(has_table_privilege(r.oid, 'schema_migrations', 'select')), false) as "isGranted",
       (select sql from granted_rights) as applied
     from pg_roles r where rolname in ('farthing_serve', 'farthing_work', 'farthing_console', 'farthing_operator')`,
  )
  return found ?? { exist: false, may: false, isGranted: false, applied: null }
}

/** As which role each of our processes is connected to this database, and whether it has the rights of another's too. */
export async function listConnections(
  db: Database,
): Promise<
  { readonly process: 'serve' | 'work' | 'console'; readonly role: string; readonly isOwn: boolean }[]
> {
  return await db.query(
    `select distinct a.process, r.rolname as role, coalesce(not r.rolsuper
       and pg_has_role(r.oid, to_regrole('farthing_' || a.process), 'usage')
       and not has_table_privilege(r.oid, 'settlers', 'delete'), false) as "isOwn"
     from (select substr(application_name, 10) as process, usesysid from pg_stat_activity
           where datname = current_database() and application_name ~ '^farthing-(serve|work|console)$') a
     join pg_roles r on r.oid = a.usesysid order by a.process, role`,
  )
}

export async function writeGranted(db: Database, sql: string): Promise<void> {
  await db.query(
    'insert into granted_rights (sql) values ($1) on conflict (only_row) do update set sql = excluded.sql',
    [sql],
  )
}

/** The tables with stores' rows that the console may use. */
export async function listStoreTables(db: Database, except: readonly string[]): Promise<string[]> {
  const tables = await db.query<{ name: string }>(
    `select relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'store_id'
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and relname <> all($1)
       and has_any_column_privilege('farthing_console', c.oid, 'select, insert, update') order by relname`,
    [except],
  )
  return tables.map(({ name }) => name)
}
