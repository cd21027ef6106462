/**
 * PostgreSQL looks for a table in a session's temporary schema first, unless a function says otherwise. Whoever has taken
 * `serve` must not get past a guard by a table of their own with one of our names.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Database } from '../../src/database/db.ts'
import { migrate } from '../../src/database/migrate.ts'
import { newId } from '../../src/ids.ts'
import { openConsole } from '../http/console/support/console.ts'
import { openGuardedStore } from '../http/console/support/wallets.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { freshDatabase, openAs } from '../support/database.ts'

const console = await openConsole()
const { farthing } = console
const { db } = farthing.ctx
const serve = openAs('serve', farthing.databaseUrl)

/** As PostgreSQL makes a database: everybody may make temporary tables in it. */
const letAllMakeTables = (admin: Database) =>
  admin.query(
    "do $$ begin execute format('grant temporary on database %I to public', current_database()); end $$",
  )
// Each of the two walls has to hold alone.
await letAllMakeTables(db)

/** What makes needs_owner() say that a key is enough, if it finds these. */
const standIns = {
  stores: "select id, 'key' as wallet_changes, mode, revision from public.stores",
  memberships: 'select store_id, role, member_id from public.memberships where false',
}
const attempts: Readonly<Record<string, string>> = {
  'a temporary table': '',
  'a temporary table first in the path': 'set local search_path = pg_temp, public',
  'a temporary table, and no public': 'set local search_path = pg_temp',
}

for (const [how, path] of Object.entries(attempts))
  test(`a taken serve puts no wallet to use with ${how} instead of ours`, async () => {
    const { store } = await openGuardedStore(console, { evmWallet: newPayer().address })
    for (const [name, rows] of Object.entries(standIns)) {
      const attack = serve.transaction(async (tx) => {
        await tx.query(`create temporary table ${name} on commit drop as ${rows}`)
        if (path !== '') await tx.query(path)
        await tx.query(
          `insert into public.wallets (id, store_id, family, address, custodial_type, created_at)
           values ($1, $2, 'EVM', $3, 'CUSTODIAL', now())`,
          [newId('wal', '00', new Date()), store.id, newPayer().address],
        )
      })
      await assert.rejects(attack, { code: '42501', message: /an owner confirms/ }, name)
    }
  })

test('every trigger’s function, and every function that guards use, names where it looks for tables', async () => {
  const loose = await db.query<{ name: string }>(
    `select p.proname as name from pg_proc p
     where p.pronamespace = 'public'::regnamespace
       and (p.prorettype = 'trigger'::regtype or p.prosecdef or p.proname = 'needs_owner')
       and not coalesce('search_path=public, pg_temp' = any(p.proconfig), false)`,
  )
  assert.deepEqual(loose, [])
})

test('in a database that migrate has set up, neither serve nor work nor the console makes temporary tables', async () => {
  const fresh = await freshDatabase('template0')
  await letAllMakeTables(fresh.db)
  await migrate(fresh.db)
  for (const role of ['serve', 'work', 'console'] as const)
    await assert.rejects(openAs(role, fresh.url).query('create temporary table stores (id text)'), {
      code: '42501',
    })
})
