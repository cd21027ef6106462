import { readFile } from 'node:fs/promises'
import type { Database } from './db.ts'
import { listStoreTables, readRights, writeGranted } from './rights-rows.ts'
import { changeSchema } from './schema.ts'

/**
 * What each database role may do: plain SQL files in server/rights, applied when one of them or the schema has changed.
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

export async function applyRights(db: Database, statementSeconds: number): Promise<RightsState> {
  const read = (name: string) => readFile(new URL(name, rightsFolder), 'utf8')
  const [roles, ...files] = await Promise.all(
    [
      'roles.sql',
      'grants.sql',
      'events.sql',
      'checkouts.sql',
      'refunds.sql',
      'wallets.sql',
      'wallet-changes.sql',
    ].map(read),
  )
  const state = await readRights(db)
  if (!state.exist && !state.may) return 'missing'
  // With the rule of which rows the console sees: it has to be applied too when it changes.
  const wanted = [...files, ...Object.values(ownOf), showOneStore('each')].join('\n')
  if (state.isGranted && state.applied === wanted) return 'unchanged'
  const run = (sql = '') => changeSchema(db, 'Granting rights', statementSeconds, (tx) => tx.script(sql))
  if (!state.exist) await run(roles)
  for (const sql of files) await run(sql)
  for (const name of await listStoreTables(db, acrossStores)) await run(showOneStore(name))
  await writeGranted(db, wanted)
  return 'granted'
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
  const roles = await readFile(new URL('roles.sql', rightsFolder), 'utf8')
  return `The roles that serve and work should connect as do not exist, and this role may not create them. Run this as a superuser, then migrate again:\n\n${roles}`
}
