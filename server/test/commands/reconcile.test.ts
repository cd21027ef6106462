import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reconcileCommand } from '../../src/commands/reconcile.ts'
import { openDatabase } from '../../src/database/db.ts'
import { openAs, urlAs } from '../support/database.ts'
import { openShop } from '../support/shop.ts'

const shop = await openShop({ worker: false })
const operator = { ...shop.ctx, db: openAs('operator', shop.databaseUrl) }

const readState = async () =>
  await shop.ctx.db.query<{ epoch: number; restores: number }>(
    'select (select epoch from event_log) as epoch, (select count(*)::integer from restores) as restores',
  )

test('while serve, work or the console is connected, reconcile changes nothing and says what to stop', async () => {
  const before = await readState()
  for (const process of ['serve', 'work', 'console'] as const) {
    const db = openDatabase({
      url: urlAs(process, shop.databaseUrl),
      connections: 2,
      name: `farthing-${process}`,
    })
    await db.query('select 1 as one')
    try {
      await assert.rejects(
        reconcileCommand(operator, { yes: true }),
        new RegExp(`^UsageError: Nothing was changed: ${process} is connected.*systemctl stop`),
      )
    } finally {
      await db.close()
    }
  }
  assert.deepEqual(await readState(), before)
})

test('without --yes and without a terminal, reconcile changes nothing', async () => {
  const before = await readState()
  await assert.rejects(reconcileCommand(operator, {}), /not a terminal.*--yes/)
  assert.deepEqual(await readState(), before)
})

test('a role with too few rights changes nothing, wherever it is stopped', async () => {
  const before = await readState()
  const superuser = shop.ctx.db
  for (const [table, right] of [
    ['restores', 'insert'],
    ['settlers', 'update'],
    ['event_log', 'update'],
  ]) {
    await superuser.query(`revoke ${right} on ${table} from farthing_operator`)
    await assert.rejects(
      reconcileCommand(operator, { yes: true }),
      /Nothing was changed: this role may not do that.*farthing_operator/,
    )
    assert.deepEqual(await readState(), before, table)
    await superuser.query(`grant ${right} on ${table} to farthing_operator`)
  }
})

test('the operator’s role reconciles once everything is stopped', async () => {
  const [before] = await readState()
  assert(before)
  assert.match(await reconcileCommand(operator, { yes: true }), /^Start work and serve now/)
  const [after] = await readState()
  assert.deepEqual(after, { epoch: before.epoch + 1, restores: before.restores + 1 })
})
