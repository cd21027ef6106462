import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { freshFolder, startDev } from '../../server/test/dev/support/running.ts'
import { openBrowser } from '../../server/test/http/page/support/browser.ts'
import { atEnd } from '../../server/test/support/at-end.ts'
import { freshDatabase } from '../../server/test/support/database.ts'
import { freePort } from '../../server/test/support/free-port.ts'
import { patienceMs } from '../../server/test/support/patience.ts'
import { until } from '../../server/test/support/until.ts'

const { url: databaseUrl } = await freshDatabase()
const dev = await startDev(await freshFolder(), { DATABASE_URL: databaseUrl })
const shop = await openShop()

test('a buyer pays on Farthing’s page and returns to an order that a webhook has marked as paid; the owner refunds it', async () => {
  const page = await (await openBrowser()).newPage()
  page.setDefaultTimeout(patienceMs)
  await page.goto(shop.url)
  for (const name of ['Enamel mug', 'Breakfast tea', 'Enamel mug'])
    await page.getByRole('button', { name: `Add ${name}` }).click()
  await page.getByRole('cell', { name: 'Enamel mug × 2' }).waitFor()
  await page.getByRole('button', { name: 'Check out' }).click()
  await page.getByText('€37.80').waitFor()
  const order = await page.getByText(/^order-[0-9a-f]{12}$/).innerText()

  // Neither returning to the shop nor an unsigned webhook marks the order as paid.
  const forged = { type: 'checkout.completed', data: { checkout: { orderId: order } } }
  const delivery = await fetch(`${shop.url}/webhooks`, { method: 'POST', body: JSON.stringify(forged) })
  assert.equal(delivery.status, 400)
  assert.match(await (await fetch(`${shop.url}/orders/${order}`)).text(), /Waiting for your payment/)

  await page.getByRole('button', { name: 'Pay with Test wallet' }).click()
  const isPaid = async () => shop.output().includes(`${order} is paid (by webhook)`)
  await until('the webhook has arrived', isPaid)
  await page.getByRole('link', { name: 'Back to 127.0.0.1' }).click()
  await page.getByText(`We are packing ${order}.`).waitFor()
  assert.equal(shop.output().match(/is paid/g)?.length, 1)

  // Only the owner refunds, and not because another site says so.
  const ask = async (headers: Record<string, string>) =>
    await fetch(`${shop.url}/owner/${order}`, { method: 'POST', headers, redirect: 'manual' })
  const owner = { authorization: `Basic ${Buffer.from('owner:secret').toString('base64')}` }
  assert.equal((await ask({ origin: shop.url })).status, 401)
  assert.equal((await ask({ ...owner, origin: 'https://elsewhere.example' })).status, 303)
  assert.match(await (await fetch(`${shop.url}/orders/${order}`)).text(), /We are packing/)
  await mine(12)
  await page.setExtraHTTPHeaders(owner)
  await until('the payment is final', async () => {
    await page.goto(`${shop.url}/owner`)
    await page.getByRole('button', { name: `Refund ${order}` }).click()
    return page.url() === `${shop.url}/owner`
  })
  await until('the webhook has arrived', async () => shop.output().includes(`${order} is refunded.`))
  assert.equal(shop.output().match(/is being refunded/g)?.length, 1)
  await page.goto(`${shop.url}/orders/${order}`)
  await page.getByRole('link', { name: 'See it on the payment’s page' }).click()
  await page.getByRole('heading', { name: 'Payment returned' }).waitFor()
  await page.getByText(`Your return of ${order}`).waitFor()
})

test('a shop that cannot reach Farthing accepts no order and says so', async () => {
  await dev.stop()
  const body = new URLSearchParams({ item: 'mug' })
  const answer = await fetch(`${shop.url}/orders`, { method: 'POST', body, redirect: 'manual' })
  assert.equal(answer.status, 502)
  assert.match(await answer.text(), /Nothing was charged/)
})

/** Moves the chain forward until all its transactions are final. */
async function mine(blocks: number): Promise<void> {
  const call = { jsonrpc: '2.0', id: 1, method: 'anvil_mine', params: [`0x${blocks.toString(16)}`] }
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(dev.settings.CHAIN_URL ?? '', {
    method: 'POST',
    headers,
    body: JSON.stringify(call),
  })
  assert(answer.ok)
}

async function openShop() {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const child = spawn(process.execPath, [fileURLToPath(new URL('shop.ts', import.meta.url))], {
    env: { ...dev.settings, PORT: String(port), OWNER_PASSWORD: 'secret' },
  })
  atEnd(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
    })
  }
  await until('the shop is open', async () => output.includes('The shop is open'))
  return { url, output: () => output }
}
