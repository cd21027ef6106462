import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { buildApp } from '../../src/http/app.ts'
import { openHealth } from '../../src/http/health.ts'
import { openTestApp } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'

test('however many ask /readyz on either port, the database is asked once per second and port', async () => {
  const { ctx, clock } = await openTestApp({ OPERATIONS_PORT: '0' })
  clock.now = new Date()
  let queries = 0
  const query: typeof ctx.db.query = (...args) => {
    queries++
    return ctx.db.query(...args)
  }
  const counted = { ...ctx, db: { ...ctx.db, query } }
  const health = { isDraining: false }
  const app = buildApp(counted, health)
  const operations = await openHealth(counted, health)
  atEnd(async () => {
    await app.close()
    operations.close()
  })
  const ask = async () => [
    (await app.inject('/readyz')).statusCode,
    (await fetch(`http://127.0.0.1:${(operations.address() as AddressInfo).port}/readyz`)).status,
  ]
  const answers = await Promise.all(Array.from({ length: 200 }, ask))
  assert.deepEqual([...new Set(answers.flat())], [200])
  assert.equal(queries, 2)
  clock.now = new Date(clock.now.getTime() + 1_000)
  await ask()
  assert.equal(queries, 4)
  // A stop shows at once.
  health.isDraining = true
  assert.deepEqual(await ask(), [503, 503])
  assert.equal(queries, 4)
})
