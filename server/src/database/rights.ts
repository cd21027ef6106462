import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { type Database, sqlState } from './db.ts'
import { changeSchema, handOver, SchemaError } from './schema.ts'

/**
 * What each database role may do: plain SQL files in server/rights, applied when one of them or the schema has changed,
 * or when a role lacks a right that they give. The migrating role cannot grant everything, for example the use of a
 * schema that it does not own: a superuser does that with owner.sql. No process could start without these rights, so a
 * migration that ends without every right fails.
 *
 * Each statement that locks a table has a transaction of its own. It never holds one table while it waits for another,
 * so it cannot deadlock with the running service.
 *
 * `missing`: the roles do not exist and this role may not create them. Nothing is granted, and every process has the
 * rights of the role that it connects as.
 */
export type RightsState = 'granted' | 'unchanged' | 'missing'

export const rightsFolder = new URL('../../rights/', import.meta.url)

/**
 * The console reads these tables across stores. One query for all open screens reads which stores a member belongs to
 * and how many events each store has. A payment's remainder is one number, shared by all stores that use the receiving
 * wallet.
 */
const acrossStores = ['memberships', 'invitations', 'event_counters', 'refund_totals']

const roleNames = [
  'farthing_serve',
  'farthing_work',
  'farthing_console',
  'farthing_operator',
  'farthing_audit',
]
/** SQL: whether the current role may create roles. */
const mayCreateRoles = 'select rolsuper or rolcreaterole from pg_roles where rolname = current_user'

const grantsFile = 'grants.sql'
const otherFiles = [
  'temporary.sql',
  'events.sql',
  'checkouts.sql',
  'decisions.sql',
  'refunds.sql',
  'wallets.sql',
  'wallet-changes.sql',
  'schedules.sql',
  'audit.sql',
]
/** A longer list would hide the advice that follows it. */
const missingShownMax = 3
/** SQLSTATE of a statement that the role has no right to run. */
const notPermitted = '42501'

export async function applyRights(db: Database, statementSeconds: number): Promise<RightsState> {
  const [roles, grants, ...others] = await Promise.all(
    ['roles.sql', grantsFile, ...otherFiles].map(readRightsFile),
  )
  const state = await readRights(db)
  if (!state.exist && !state.may) return 'missing'
  const files = [grants, ...others]
  // This text includes the row policies of the console, so a changed policy is applied too.
  const wanted = [...files, ...Object.values(ownOf), showOneStore('each')].join('\n')
  if (state.exist && state.applied === wanted && (await listLacking(db)).length === 0) return 'unchanged'
  const run = (sql = '') => changeSchema(db, 'Granting rights', statementSeconds, (tx) => tx.script(sql))
  if (!state.exist) await run(roles)
  try {
    for (const sql of files) await run(sql)
    for (const name of await listStoreTables(db, acrossStores)) await run(showOneStore(name))
  } catch (error) {
    if (sqlState(error) !== notPermitted) throw error
    throw new SchemaError(`This role may not grant what the others need: ${String(error)}.`, handOver, error)
  }
  const lacking = await listLacking(db)
  if (lacking.length > 0)
    throw new SchemaError(`The database roles lack rights: ${describeLacking(lacking)}.`, handOver)
  await db.query(
    'insert into granted_rights (sql) values ($1) on conflict (only_row) do update set sql = excluded.sql',
    [wanted],
  )
  return 'granted'
}

/**
 * Refuses to migrate if some of the roles exist, those of an older release, and this role may not create the others.
 * Call it before anything is changed.
 */
export async function refuseMissingRoles(db: Database): Promise<void> {
  const [found] = await db.query<{ missing: string[]; may: boolean }>(
    `select array_agg(w.role) filter (where to_regrole(w.role) is null) as missing, (${mayCreateRoles}) as may
     from unnest($1::text[]) w (role) having count(to_regrole(w.role)) between 1 and count(*) - 1`,
    [roleNames],
  )
  if (!found || found.may) return
  throw new SchemaError(
    `The database role ${found.missing.join(', ')} is missing, and this role may not create it. Nothing was changed.`,
    'Run server/rights/roles.sql and then server/rights/owner.sql in Farthing’s database as a superuser, then migrate again.',
  )
}

type RightsFound = {
  /** Whether the roles exist, and whether we may create them. */
  readonly exist: boolean
  readonly may: boolean
  /** The SQL that was last applied. */
  readonly applied: string | null
}

async function readRights(db: Database): Promise<RightsFound> {
  const [found] = await db.query<RightsFound>(
    `select count(to_regrole(w.role)) = count(*) as exist, (${mayCreateRoles}) as may,
       (select sql from granted_rights) as applied from unnest($1::text[]) w (role)`,
    [roleNames],
  )
  return found ?? { exist: false, may: false, applied: null }
}

/**
 * The rights that the processes need and their roles lack, including the right to connect. A role that does not exist
 * lacks nothing, because every process then connects as one login.
 */
export async function listLacking(db: Database): Promise<Privilege[]> {
  const [found] = await db.query<{ tables: string[]; roles: string[] }>(
    `select array(select relname::text from pg_class where relnamespace = 'public'::regnamespace
         and relkind in ('r', 'p', 'v') and not relispartition) as tables,
       array(select rolname::text from pg_roles where rolname like 'farthing\\_%') as roles`,
  )
  if (!found) return []
  const wanted = readGrants(await readRightsFile(grantsFile), found.tables).filter(({ role }) =>
    found.roles.includes(role),
  )
  const of = <Field extends keyof Privilege>(field: Field) => wanted.map((right) => right[field])
  return await db.query<Privilege>(
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

export function describeLacking(rights: readonly Privilege[]): string {
  const shown = rights.slice(0, missingShownMax).map(describePrivilege)
  const more = rights.length - shown.length
  return `${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`
}

async function readRightsFile(name: string): Promise<string> {
  return await readFile(new URL(name, rightsFolder), 'utf8')
}

const own = "store_id = current_setting('farthing.store', true)"

const isRefundOfTheirs = "nonce like '0x66746872%' and payer in (select w.pay_to from wallets w)"

/**
 * Money without a checkout belongs to no store. A store sees the money that its wallets received, and the money that
 * left them with a refund's nonce. After a restore, a refund found on the chain belongs to no store either, until one
 * of the store's refunds accounts for it.
 */
const ownOf: Readonly<Record<string, string>> = {
  credits: `${own} or (checkout_id is null and (pay_to in (select w.pay_to from wallets w)
    or pay_to = 'sim_' || current_setting('farthing.store', true)
    or (${isRefundOfTheirs})))`,
  authorizations: `${own} or (store_id is null and ${isRefundOfTheirs})`,
}

/**
 * SQL: the console sees and writes only this table's rows of the store that its transaction names. Other roles see all
 * rows. A mistake in one of the console's screens must not show one store's payments to another's members.
 */
function showOneStore(table: string): string {
  return `
alter table ${table} enable row level security;
drop policy if exists all_rows on ${table};
create policy all_rows on ${table} using (true);
drop policy if exists one_store on ${table};
create policy one_store on ${table} as restrictive to farthing_console
  using (${ownOf[table] ?? own}) with check (${own});
`
}

/** The tables with stores' rows that the console may use. */
async function listStoreTables(db: Database, except: readonly string[]): Promise<string[]> {
  const tables = await db.query<{ name: string }>(
    `select relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'store_id'
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and relname <> all($1)
       and has_any_column_privilege('farthing_console', c.oid, 'select, insert, update') order by relname`,
    [except],
  )
  return tables.map(({ name }) => name)
}

/** What `migrate` prints about the roles' rights; null if nothing changed. */
export async function describeRights(state: RightsState): Promise<string | null> {
  if (state === 'unchanged') return null
  if (state === 'granted') return 'Granted the rights of the database roles.'
  const roles = await readRightsFile('roles.sql')
  return `The roles that serve and work should connect as do not exist, and this role may not create them. Run this as a superuser, then migrate again:\n\n${roles}`
}

/** Our roles that may create temporary tables. Such a table could shadow one of ours in the search path. */
export async function listTableMakers(db: Database): Promise<string[]> {
  const rows = await db.query<{ role: string }>(
    `select rolname as role from pg_roles
     where rolname in ('farthing_serve', 'farthing_work', 'farthing_console', 'farthing_audit')
       and has_database_privilege(rolname, current_database(), 'temporary') order by role`,
  )
  return rows.map(({ role }) => role)
}

/** The role that each of our processes connects as, and whether that role is the process's own. */
export async function listConnections(db: Database): Promise<
  {
    readonly process: 'serve' | 'work' | 'console' | 'audit'
    readonly role: string
    readonly isOwn: boolean
  }[]
> {
  return await db.query(
    `select distinct a.process, r.rolname as role, coalesce(not r.rolsuper
       and pg_has_role(r.oid, to_regrole('farthing_' || a.process), 'usage')
       and not has_table_privilege(r.oid, 'settlers', 'delete'), false) as "isOwn"
     from (select substr(application_name, 10) as process, usesysid from pg_stat_activity
           where datname = current_database() and application_name ~ '^farthing-(serve|work|console|audit)$') a
     join pg_roles r on r.oid = a.usesysid order by a.process, role`,
  )
}

/**
 * Reads server/rights/grants.sql, so that the rights of the roles are written once: `migrate` applies the file, then asks
 * PostgreSQL for each of these rights. PostgreSQL only warns when a grant grants nothing.
 *
 * Statements are applied in order, and a revoke takes back what was granted before it. Any other form is a mistake in
 * the file.
 */
type Privilege = {
  readonly role: string
  readonly kind: 'database' | 'schema' | 'table' | 'function'
  readonly object: string
  readonly privilege: string
  /** Null: the whole table. */
  readonly column: string | null
}

const form =
  /^(?<verb>grant|revoke) (?<privileges>.+?) on (?:(?<kind>schema|function|all tables in schema) )?(?<objects>\w+(?:, \w+)*) (?:to|from) (?<roles>\w+(?:, \w+)*)$/

/** `tables` is what "all tables in schema public" means. */
export function readGrants(sql: string, tables: readonly string[]): Privilege[] {
  let rights: Privilege[] = []
  for (const statement of listStatements(sql)) {
    const { verb, privileges, kind, objects, roles } =
      form.exec(statement)?.groups ?? assert.fail(`cannot read this grant: ${statement}`)
    assert(verb && privileges && objects && roles)
    const named = kind === 'all tables in schema' ? tables : objects.split(', ')
    const said: Privilege[] = roles.split(', ').flatMap((role) =>
      named.flatMap((object) =>
        listPrivileges(privileges).map(({ privilege, column }) => ({
          role,
          kind: kind === 'schema' || kind === 'function' ? kind : 'table',
          object,
          privilege,
          column,
        })),
      ),
    )
    if (verb === 'grant') rights.push(...said)
    else rights = rights.filter((right) => !said.some((taken) => takes(taken, right)))
  }
  return rights.filter(({ role }) => role !== 'public')
}

function listStatements(sql: string): string[] {
  return sql
    .replace(/--.*$/gm, '')
    .split(';')
    .map((statement) => statement.replace(/\s+/g, ' ').trim())
    .filter((statement) => statement !== '')
}

/** "select, update (a, b)" names one right on the table, and one on each column. */
function listPrivileges(text: string): { privilege: string; column: string | null }[] {
  return [...text.matchAll(/(\w+)(?: \(([\w, ]+)\))?/g)].flatMap(([, privilege = '', columns]) =>
    (columns?.split(', ') ?? [null]).map((column) => ({ privilege, column })),
  )
}

function takes(taken: Privilege, right: Privilege): boolean {
  return (
    taken.role === right.role &&
    taken.kind === right.kind &&
    taken.object === right.object &&
    (taken.privilege === 'all' || taken.privilege === right.privilege) &&
    (taken.column === null || taken.column === right.column)
  )
}

export function describePrivilege({ role, kind, object, privilege, column }: Privilege): string {
  return `${role}: ${privilege}${column === null ? '' : ` (${column})`} on ${kind} ${object}`
}
