/** The helpers for a shop's own tests, against a deployment that has no node and no settler. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { SimulatedCase } from '@farthing/sdk'
import { openTests } from '@farthing/sdk/test'
import { comes } from '../../server/test/payments/sim/support/comes.ts'
import { atEnd } from '../../server/test/support/at-end.ts'
import { startWork, untilReady } from '../../server/test/support/client.ts'
import { openStore } from './support/shops.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const shop = await openStore({ NETWORKS: 'SIMULATED' })
startWork(shop)
await untilReady(shop, 'farthing:simulated')
const tests = openTests({ apiKey: shop.key, baseUrl: shop.baseUrl })

test('every case brings the events that the docs say, in their order', async (t) => {
  const begun = performance.now()
  await Promise.all(
    (Object.keys(comes) as SimulatedCase[]).map(async (name) => {
      const { checkout, simulate, events } = await tests.create({ orderId: name })
      assert.equal((await simulate(name)).checkout.id, checkout.id)
      for (const type of comes[name]) await events.expect(type)
    }),
  )
  // About four seconds on a quiet machine.
  t.diagnostic(`all of them took ${Math.round(performance.now() - begun)} ms`)
})

test('the cases that only the payer hears of say what the payer was told', async () => {
  const told = async (name: SimulatedCase) => (await (await tests.create()).simulate(name)).answer
  assert.deepEqual(await told('network.down'), { status: 503, error: 'settlement_unavailable' })
  assert.deepEqual(await told('network.no_gas'), { status: 503, error: 'settlement_unavailable' })
  assert.deepEqual(await told('payment.refused'), {
    status: 402,
    error: 'invalid_exact_evm_transaction_simulation_failed',
  })
})

test('the template in the docs passes as it is', async () => {
  const page = await readFile(join(root, 'docs/test-stores.md'), 'utf8')
  const [, template] = /```ts shop\.test\.ts\n([\s\S]*?)```/.exec(page) ?? []
  assert(template)
  const folder = await mkdtemp(join(tmpdir(), 'farthing-shop-'))
  atEnd(() => rm(folder, { recursive: true }))
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await writeFile(join(folder, 'shop.test.ts'), template)
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, ['--test', 'shop.test.ts'], {
    cwd: folder,
    env: { ...env, FARTHING_URL: shop.baseUrl, FARTHING_API_KEY: shop.key },
  })
  assert.match(stdout, /fail 0/)
})
