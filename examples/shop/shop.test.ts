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

test('a buyer fills the cart, pays on Farthing’s page and returns to an order that a webhook has marked as paid', async () => {
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
})

test('a shop that cannot reach Farthing accepts no order and says so', async () => {
  await dev.stop()
  const body = new URLSearchParams({ item: 'mug' })
  const answer = await fetch(`${shop.url}/orders`, { method: 'POST', body, redirect: 'manual' })
  assert.equal(answer.status, 502)
  assert.match(await answer.text(), /Nothing was charged/)
})

async function openShop() {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const child = spawn(process.execPath, [fileURLToPath(new URL('shop.ts', import.meta.url))], {
    env: { PORT: String(port), FARTHING_URL: dev.url, FARTHING_API_KEY: dev.key },
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
