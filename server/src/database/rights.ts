import { readFile } from 'node:fs/promises'
import { type Database, sqlState } from './db.ts'
import { describeRight, type Right } from './grants.ts'
import { listMissingRights, listStoreTables, readRights, writeGranted } from './rights-rows.ts'
import { changeSchema, handOver, SchemaError } from './schema.ts'

/**
 * What each database role may do: plain SQL files in server/rights, applied when one of them or the schema has changed,
 * or when a role lacks a right that they give. What the migrating role cannot grant, such as the use of a schema that it
 * does not own, is for a superuser, by owner.sql: without it no process could start, so a migration that ends without
 * every right fails.
 * Whatever locks a table has a transaction of its own: it never holds one table while it waits for another, so it cannot
 * deadlock with the running service.
 *
 * `missing`: the roles do not exist and this role may not create them. Nothing is granted then, and whoever connects has
 * the rights of the role they connect as.
 */
export type RightsState = 'granted' | 'unchanged' | 'missing'

export const rightsFolder = new URL('../../rights/', import.meta.url)

/**
 * The console reads these across stores: they say which stores somebody belongs to, and how many events each has, for all
 * open screens in one query. What is left of a payment is one number for all stores that share the wallet it came to.
 */
const acrossStores = ['memberships', 'invitations', 'event_counters', 'refund_totals']

const grantsFile = 'grants.sql'
const otherFiles = [
  'temporary.sql',
  'events.sql',
  'checkouts.sql',
  'refunds.sql',
  'wallets.sql',
  'wallet-changes.sql',
]
/** More than these would hide what to do about them. */
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
  // With the rule of which rows the console sees: it has to be applied too when it changes.
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
  await writeGranted(db, wanted)
  return 'granted'
}

/** Which of the rights that the processes need their roles do not have. */
export async function listLacking(db: Database): Promise<Right[]> {
  return await listMissingRights(db, await readRightsFile(grantsFile))
}

export function describeLacking(rights: readonly Right[]): string {
  const shown = rights.slice(0, missingShownMax).map(describeRight)
  const more = rights.length - shown.length
  return `${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`
}

async function readRightsFile(name: string): Promise<string> {
  return await readFile(new URL(name, rightsFolder), 'utf8')
}

const own = "store_id = current_setting('farthing.store', true)"

const isRefundOfTheirs = "nonce like '0x66746872%' and payer in (select w.pay_to from wallets w)"

/**
 * Money without a checkout has no store of its own: a store sees what came to its wallets, and what left them with the
 * nonce of a refund. Nor does a refund that was found on the chain after a restore, until a store's own refund accounts
 * for it.
 */
const ownOf: Readonly<Record<string, string>> = {
  credits: `${own} or (checkout_id is null and (pay_to in (select w.pay_to from wallets w)
    or (${isRefundOfTheirs})))`,
  authorizations: `${own} or (store_id is null and ${isRefundOfTheirs})`,
}

/**
 * SQL: of this table, the console sees the rows of the store that its transaction names, everybody else sees all. A
 * mistake in one of its screens must not show one store's payments to another's members. What it writes is that store's.
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

/** What to tell whoever ran a migration; null if there is nothing to say. */
export async function describeRights(state: RightsState): Promise<string | null> {
  if (state === 'unchanged') return null
  if (state === 'granted') return 'Granted the rights of the database roles.'
  const roles = await readRightsFile('roles.sql')
  return `The roles that serve and work should connect as do not exist, and this role may not create them. Run this as a superuser, then migrate again:\n\n${roles}`
}
