/** Reports: a month's sums, its files and its statement, as an owner uses them. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import { bookAll, payFinal } from '../../movements/support/books.ts'
import { bookAt, lineOf } from '../../movements/support/lines.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { openAs } from '../../support/database.ts'
import { registerWallet } from '../../support/store.ts'
import { openBrowser } from '../page/support/browser.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore } from './support/console.ts'
import { openSignedIn } from './support/furnished.ts'

const console = await openConsole({ listens: true })
const { farthing } = console
const { ctx } = farthing
const work = { ...ctx, db: openAs('work', farthing.databaseUrl) }
const chromium = await openBrowser()
after(() => chromium.close())

test('an empty store’s Reports say what will be there, and the month of the first payment has its sums and its files', async () => {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const owner = await enrolWith(console, token)
  const page = await openSignedIn(chromium, console, owner)
  await page.goto(`${console.url}/stores/${store.id}`)
  await page.getByRole('link', { name: 'Reports' }).first().click()
  await page.getByRole('heading', { name: 'Nothing in the books yet' }).waitFor()
  await payFinal(farthing, store, { orderId: 'A-1' })
  await bookAll(work)
  await page.reload()
  assert.match(await page.locator('dl.figures').first().innerText(), /\$12\.50/)
  assert.match(await page.locator('main').innerText(), /is still running/)
  // Home says the same of the month.
  const month = await page.locator('dl.figures').first().locator('dd').allInnerTexts()
  await page.goto(`${console.url}/stores/${store.id}?period=month`)
  const home = await page.locator('dl.figures').nth(1).locator('dd').allInnerTexts()
  assert.deepEqual(home, month.slice(0, 3))
  await page.goBack()
  for (const [name, pattern] of [
    ['Spreadsheet', /Booked,Happened,What,Order[\s\S]*A-1,12\.50,USD/],
    ['Bank statement', /^Date,Amount,Description,Reference\r\n[\d-]+,12\.50,"Payment A-1, 12\.50 USDC/],
    ['All fields', /^number,id,type,/],
  ] as const) {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name, exact: true }).click(),
    ])
    assert.match(download.suggestedFilename(), /-\d{4}-\d\d\.csv$/)
    assert.match(await readFile(await download.path(), 'utf8'), pattern, name)
  }
  await page.context().close()
})

test('a closed month has a statement that Chromium prints, with balances, receipts and the seller’s legal data', async () => {
  const { store, token } = await openInvitedStore(console)
  const owner = await enrolWith(console, token)
  const { id } = store
  await store.call('PATCH', `/api/v1/stores/${id}`, {
    ...{ legalName: 'Juniper & Pine GmbH', legalAddress: 'Am Markt 1\n10115 Berlin', taxId: 'DE123456789' },
  })
  await bookAt(farthing, '2026-09-10T10:00:00Z', [lineOf(id, { amount: 30_000_000n, value: '30.00' })])
  await bookAt(farthing, '2026-10-31T10:00:00Z', [
    lineOf(id),
    lineOf(id, { type: 'refund', amount: -2_500_000n, value: '-2.50' }),
    lineOf(id, { amount: 7_000_000n, value: null, valueRateSource: null, valueCurrency: 'USD' }),
  ])
  const page = await openSignedIn(chromium, console, owner)
  await page.goto(`${console.url}/stores/${id}/reports?month=2026-10`)
  const main = page.locator('main')
  assert.match(await main.innerText(), /October 2026 is closed/)
  assert.equal(await page.locator('.bar').count(), 1)
  assert.equal(await page.locator('.bar.now').count(), 0, 'no day of a closed month is still running')
  assert.match(await main.innerText(), /Not in these sums: 7\.00 USDC/)
  assert.match(await page.locator('dl.figures').innerText(), /\$12\.50[\s\S]*-\$2\.50[\s\S]*\$10\.00/)
  await page.getByRole('link', { name: 'Open the statement' }).click()
  await page.getByRole('heading', { name: 'Statement for October 2026' }).waitFor()
  const text = await main.innerText()
  for (const part of [
    'Juniper & Pine GmbH',
    '10115 Berlin',
    'DE123456789',
    '30.00',
    '19.50',
    '−2.50'.slice(1),
    '47.00',
  ])
    assert(text.includes(part), part)
  // News for the owner is not for whoever gets the sheet.
  await registerWallet(store, newPayer().address)
  await page.reload()
  await page.getByRole('button', { name: 'Got it' }).waitFor()
  await page.emulateMedia({ media: 'print' })
  assert.match(await main.innerText(), /^Statement for/)
  assert.equal(await page.locator('.side').isVisible(), false)
  assert.equal(await page.getByRole('button', { name: 'Print' }).isVisible(), false)
  // A4 without its margins.
  await page.setViewportSize({ width: 718, height: 1000 })
  for (const cell of await page.locator('.statement :is(th, td)').all()) {
    assert(await cell.isVisible(), (await cell.textContent()) ?? '')
    const { x, width } = (await cell.boundingBox()) ?? assert.fail('a cell without a place')
    assert(x >= 0 && x + width <= 718, `${await cell.textContent()} leaves the sheet`)
  }
  const pdf = await page.pdf({ format: 'A4' })
  assert.equal(pdf.subarray(0, 5).toString(), '%PDF-')
  await page.context().close()
})

test('a viewer sees the reports, and a stranger’s store has none of them', async () => {
  const [mine, other] = [await openInvitedStore(console), await openInvitedStore(console)]
  const owner = await enrolWith(console, mine.token)
  const viewer = await enrolWith(
    console,
    await inviteBy(owner, mine.store.id, { name: 'Vera', role: 'viewer' }),
  )
  await bookAt(farthing, '2026-10-10T10:00:00Z', [lineOf(other.store.id, { orderId: 'SECRET-9' })])
  for (const path of ['reports', 'reports/statement', 'reports/export'])
    for (const query of [
      '',
      '?month=2026-10',
      '?month=2026-13',
      '?month=../..',
      '?month=2026-10&file=bank',
    ]) {
      const mineAnswer = await viewer.browser.get(`/stores/${mine.store.id}/${path}${query}`)
      assert.equal(mineAnswer.statusCode, 200, path)
      assert(!mineAnswer.body.includes('SECRET-9'))
      const answer = await viewer.browser.get(`/stores/${other.store.id}/${path}${query}`)
      assert.equal(answer.statusCode, 404, path)
    }
})
