import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseEnv } from 'node:util'
import type { PaymentRequired } from '@farthing/sdk'
import { testPayer } from '../../src/dev/chain.ts'
import { createStore } from '../../src/stores/create.ts'
import { openBrowser } from '../http/page/support/browser.ts'
import { openTestApp } from '../support/app.ts'
import { paymentHeader } from '../support/chain/evm-payment.ts'
import { freshDatabase } from '../support/database.ts'
import { patienceMs } from '../support/patience.ts'
import { startProcess } from '../support/process.ts'
import { until } from '../support/until.ts'
import { freshFolder, processesIn, startDev } from './support/running.ts'

const idOf = (checkoutUrl: string) => checkoutUrl.split('/').at(-1) ?? ''

test('dev leads to a payment by one click; Ctrl-C leaves no process; the next start has the same key, checkouts and chain', async () => {
  const folder = await freshFolder()
  const first = await startDev(folder)
  const browser = await openBrowser()
  const page = await browser.newPage()
  page.setDefaultTimeout(patienceMs)
  const complaints: string[] = []
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.goto(first.checkoutUrl)
  await page.getByRole('button', { name: 'Pay with Test wallet' }).click()
  await page.getByRole('heading', { name: 'Payment received', exact: true }).waitFor()
  await page.close()
  assert.deepEqual(complaints, [])
  const paid = await first.call(`/checkouts/${idOf(first.checkoutUrl)}`)
  assert.equal(paid.status, 'COMPLETED')
  assert.equal(paid.priceCurrency, 'EUR')
  // 4.99 ÷ 0.86, rounded up.
  assert.match(JSON.stringify(paid), /"5802326"/)
  assert(processesIn(folder).length >= 4)
  assert.equal(await first.stop(), 0)
  assert.deepEqual(processesIn(folder), [])

  const second = await startDev(folder, { PORT: new URL(first.url).port })
  assert.equal(second.key, first.key)
  assert.notEqual(second.checkoutUrl, first.checkoutUrl)
  assert.equal((await second.call(`/checkouts/${idOf(first.checkoutUrl)}`)).status, 'COMPLETED')
  const { accepts } = (await (await fetch(second.checkoutUrl)).json()) as PaymentRequired
  assert.deepEqual(accepts[0]?.extra, { name: 'USDC', version: '2' })
  // The chain is the same as before: the payer has what was left, plus the funds that each start adds.
  await untilHolds(folder, accepts[0]?.asset, 2_000_000_000n - 5_802_326n)
  assert.equal(await second.stop(), 0)
})

test('a payment survives a killed worker and moves the money once', async () => {
  const folder = await freshFolder()
  const { url } = await freshDatabase()
  const { checkoutUrl, call, output } = await startDev(folder, { DATABASE_URL: url })
  const required = (await (await fetch(checkoutUrl, { method: 'POST' })).json()) as PaymentRequired
  const header = await paymentHeader(required, testPayer.key)
  const pay = () => fetch(checkoutUrl, { method: 'POST', headers: { 'payment-signature': header } })
  const answer = pay()
  const id = idOf(checkoutUrl)
  await until('the payment is claimed', async () => (await call(`/checkouts/${id}`)).status === 'PROCESSING')
  const pid = Number.parseInt(await readFile(join(folder, '.dev/work.pid'), 'utf8'), 10)
  process.kill(pid, 'SIGKILL')
  await until('the worker is back', async () => output().includes('work is back'))
  assert([200, 202].includes((await answer).status))
  await until('the checkout is paid', async () => (await pay()).status === 200)
  assert.equal((await call(`/checkouts/${id}`)).status, 'COMPLETED')
  const [option] = required.accepts
  await untilHolds(folder, option?.asset, 1_000_000_000n - BigInt(option?.amount ?? 0))
})

test('closing the terminal leaves no process behind', async () => {
  const folder = await freshFolder()
  const { url } = await freshDatabase()
  const { child } = await startDev(folder, { DATABASE_URL: url })
  child.stdout.destroy()
  child.kill('SIGHUP')
  await until('dev has exited', async () => child.exitCode !== null)
  assert.deepEqual([child.exitCode, processesIn(folder)], [0, []])
})

test('dev refuses a folder or port in use and a database with live stores, and says why', async () => {
  const folder = await freshFolder()
  const { ctx, databaseUrl } = await openTestApp()
  const running = await startDev(folder, { DATABASE_URL: databaseUrl })
  await assert.rejects(startDev(folder), /dev is already running here as process \d+/)
  await assert.rejects(
    startDev(await freshFolder(), { PORT: new URL(running.url).port }),
    /Port \d+ is taken\. Choose another: PORT=/,
  )
  await running.stop()
  await createStore(ctx, { name: 'Shop', mode: 'live' }, new Date())
  await assert.rejects(startDev(folder, { DATABASE_URL: databaseUrl }), /a database with live stores/)
  assert.deepEqual(processesIn(folder), [])
})

test('serve never serves the test wallet, not even on the local chain', async () => {
  const { ctx, databaseUrl } = await openTestApp()
  await createStore(ctx, { name: 'Shop', mode: 'test' }, new Date())
  const { started } = await startProcess('serve', { DATABASE_URL: databaseUrl, NETWORKS: 'LOCAL' })
  const get = async (path: string) => {
    const answer = await fetch(`${started.address}${path}`, { headers: { accept: 'text/html' } })
    return { status: answer.status, text: await answer.text() }
  }
  assert.equal((await get('/dev/test-wallet.js')).status, 404)
  const page = await get('/pay/ch_none')
  const scripts = [...page.text.matchAll(/<script[^>]* src="([^"]+)"/g)].map(([, source]) => source ?? '')
  assert.equal(scripts.length, 1)
  const { status, text } = await get(scripts[0] ?? '')
  assert.equal(status, 200)
  assert(!text.includes(testPayer.key.slice(2)) && !text.includes('Test wallet'))
})

/** Waits until the test payer holds exactly this on the chain of `dev` in this folder. Each start adds funds. */
async function untilHolds(folder: string, token: string | undefined, units: bigint): Promise<void> {
  const { CHAIN_URL = '' } = parseEnv(await readFile(join(folder, '.dev/env'), 'utf8'))
  const data = `0x70a08231${testPayer.address.slice(2).toLowerCase().padStart(64, '0')}`
  const body = { jsonrpc: '2.0', id: 1, method: 'eth_call', params: [{ to: token, data }, 'latest'] }
  const headers = { 'content-type': 'application/json' }
  await until(`the test payer holds ${units}`, async () => {
    const answer = await fetch(CHAIN_URL, { method: 'POST', headers, body: JSON.stringify(body) })
    return BigInt(((await answer.json()) as { result: string }).result) === units
  })
}
