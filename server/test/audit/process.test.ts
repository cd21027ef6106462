/** The audit as a process with its own login: it is killed in the middle, and the next one goes on. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { urlAs } from '../support/database.ts'
import { openFaultyNode } from '../support/faulty-node.ts'
import { startProcess } from '../support/process.ts'
import { openShop, payTo } from '../support/shop.ts'
import { until } from '../support/watch.ts'

const main = new URL('../../src/main.ts', import.meta.url).pathname

test('an audit that is killed in the middle is followed by one that goes on, and each day is told once', async () => {
  // A chain whose days are over by the clock of the process. Nothing follows it, and one transfer is on its second day.
  const dayMs = 86_400_000
  const midnight = Math.floor(Date.now() / dayMs) * dayMs
  const secondsAt = (days: number) => (midnight - days * dayMs) / 1_000
  const extraArgs = ['--timestamp', `${secondsAt(3) + 60}`]
  const shop = await openShop({ worker: false, blockTimeSeconds: null, extraArgs })
  const { db } = shop.ctx
  await db.query('update wallets set created_at = to_timestamp($1)', [secondsAt(3) + 30])
  await shop.chain.setNextBlockTimestamp(BigInt(secondsAt(2) + 60))
  await shop.chain.mint(payTo, 5_000_000n)
  for (const days of [1, 0]) {
    await shop.chain.setNextBlockTimestamp(BigInt(secondsAt(days) + 60))
    await shop.chain.mine(days === 0 ? 70 : 1)
  }
  const node = await openFaultyNode(shop.chain.url)
  const settings = {
    DATABASE_URL: shop.databaseUrl,
    NETWORKS: 'LOCAL',
    LOCAL_RPC_URLS: node.url,
    MIGRATE_ON_START: 'false',
  }
  const countDays = async () => (await db.query('select distinct day from audit_days')).length
  // The second question for transfers never gets its answer.
  let logs = 0
  node.choose = (calls) =>
    calls.some(({ method }) => method === 'eth_getLogs') && ++logs >= 2 ? 'hanging' : null
  const first = await startProcess('audit', settings)
  await until(async () => node.waiting > 0, 'the question')
  await first.kill('SIGKILL')
  assert.equal(await countDays(), 1)
  node.heal()
  // A process that died holds its lease until it ends.
  await db.query('update schedules set leased_until = clock(), run_at = clock()')
  const second = await startProcess('audit', settings)
  await until(async () => (await countDays()) === 3, 'the other days')
  await second.kill('SIGTERM')
  const [run] = await db.query<{ trouble: string | null }>('select trouble from audit_runs')
  assert.equal(run?.trouble, null)
  // On request, as a command.
  const day = new Date(Date.now() - dayMs).toISOString().slice(0, 10)
  const { stdout } = await promisify(execFile)(process.execPath, [main, 'audit', 'check', day], {
    env: {
      PATH: process.env.PATH,
      BASE_URL: 'https://farthing.example',
      ...{ ...settings, DATABASE_URL: urlAs('audit', shop.databaseUrl) },
    },
  })
  assert.match(
    stdout,
    new RegExp(`^LOCAL ${day}: 1 wallets, \\d+ transfers, 0 new differences, .* \\d+ calls`),
  )
  assert.match(stdout, /No differences\./)
  const found = await db.query('select kind, amount::text as amount from audit_findings')
  assert.deepEqual(found, [{ kind: 'missing', amount: '5000000' }])
})
