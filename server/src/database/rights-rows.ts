import type { Database } from './db.ts'
import { type Right, readGrants } from './grants.ts'

type RightsFound = {
  /** Whether the roles exist, and whether we may make them. */
  readonly exist: boolean
  readonly may: boolean
  /** What was last granted. */
  readonly applied: string | null
}

export async function readRights(db: Database): Promise<RightsFound> {
  const [found] = await db.query<RightsFound>(
    `select count(r.oid) = 4 as exist,
       (select rolsuper or rolcreaterole from pg_roles where rolname = current_user) as may,
       (select sql from granted_rights) as applied
     from pg_roles r where rolname in ('farthing_serve', 'farthing_work', 'farthing_console', 'farthing_operator')`,
  )
  return found ?? { exist: false, may: false, applied: null }
}

/**
 * Which of the rights in `grants`, the text of grants.sql, the roles do not have; and that to connect. A role that does
 * not exist lacks nothing: everything connects as one login then.
 */
export async function listMissingRights(db: Database, grants: string): Promise<Right[]> {
  const [found] = await db.query<{ tables: string[]; roles: string[] }>(
    `select array(select relname::text from pg_class where relnamespace = 'public'::regnamespace
         and relkind in ('r', 'p', 'v') and not relispartition) as tables,
       array(select rolname::text from pg_roles where rolname like 'farthing\\_%') as roles`,
  )
  if (!found) return []
  const wanted = readGrants(grants, found.tables).filter(({ role }) => found.roles.includes(role))
  const of = <Field extends keyof Right>(field: Field) => wanted.map((right) => right[field])
  return await db.query<Right>(
    `select w.* from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
         as w (role, kind, object, privilege, "column")
     where not coalesce(case w.kind when 'schema' then has_schema_privilege(w.role, w.object, w.privilege)
       when 'function' then (select bool_and(has_function_privilege(w.role, p.oid, w.privilege)) from pg_proc p
         where p.proname = w.object and p.pronamespace = 'public'::regnamespace)
       else (select case when w."column" is null then has_table_privilege(w.role, c.oid, w.privilege)
           else has_column_privilege(w.role, c.oid, w."column", w.privilege) end
         from pg_class c where c.relname = w.object and c.relnamespace = 'public'::regnamespace) end, false)
     union all
     select r.role, 'database', current_database()::text, 'connect', null from (select distinct unnest($1::text[])) r (role)
     where not has_database_privilege(r.role, current_database(), 'connect')`,
    [of('role'), of('kind'), of('object'), of('privilege'), of('column')],
  )
}

/** Which of our roles may make temporary tables, which could stand before ours in a search path. */
export async function listTableMakers(db: Database): Promise<string[]> {
  const rows = await db.query<{ role: string }>(
    `select rolname as role from pg_roles
     where rolname in ('farthing_serve', 'farthing_work', 'farthing_console')
       and has_database_privilege(rolname, current_database(), 'temporary') order by role`,
  )
  return rows.map(({ role }) => role)
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
