/** A store's own file formats: made in the console, exported, and opened again by a reader that knows nothing of ours. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import { bookAt, lineOf } from '../../movements/support/lines.ts'
import { openBrowser } from '../page/support/browser.ts'
import { enrolWith, inviteBy, openConsole, openInvitedStore } from './support/console.ts'
import { openSignedIn } from './support/furnished.ts'

const console = await openConsole({ listens: true })
const { farthing } = console
const chromium = await openBrowser()
after(() => chromium.close())

async function openShop() {
  const { store, token } = await openInvitedStore(console)
  const owner = await enrolWith(console, token)
  const path = `/stores/${store.id}/reports`
  return {
    store,
    owner,
    path,
    post: (fields: Record<string, string>) => owner.browser.post(`${path}/mapping`, fields),
  }
}

const smallest = { name: 'Mine', delimiter: 'comma', decimal: 'point', dates: 'YYYY-MM-DD', field0: 'number' }

/** RFC 4180, character by character. */
function readCsv(text: string, delimiter: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let cell = ''
  let isQuoted = false
  for (let i = 0; i < text.length; i++) {
    const sign = text.charAt(i)
    if (isQuoted && sign === '"' && text[i + 1] === '"') cell += text.charAt(++i)
    else if (sign === '"') isQuoted = !isQuoted
    else if (isQuoted || (sign !== delimiter && sign !== '\r')) cell += sign
    else {
      row.push(cell)
      cell = ''
      if (sign === delimiter) continue
      assert.equal(text[++i], '\n')
      rows.push(row)
      row = []
    }
  }
  assert(!isQuoted && cell === '' && row.length === 0)
  return rows
}

test('an owner makes a format for the accountant’s program, downloads a month in it, changes it and deletes it', async () => {
  const { store, owner, path } = await openShop()
  await bookAt(farthing, '2026-10-10T22:30:00Z', [
    lineOf(store.id, { orderId: '=1+1;"x"\nnext', amount: -12_500_000n, value: '-11.30' }),
    lineOf(store.id, { orderId: 'Müller 😀' }),
  ])
  const page = await openSignedIn(chromium, console, owner)
  await page.goto(`${console.url}${path}?month=2026-10`)
  await page.getByRole('link', { name: 'Make a format of your own' }).click()
  await page.getByLabel('Name', { exact: true }).fill('DATEV <b>Kanzlei</b>')
  await page.getByLabel('Between columns').selectOption('Semicolon')
  await page.getByLabel('Numbers').selectOption('1234,50')
  await page.getByLabel('Dates').selectOption('DD.MM.YYYY')
  await page.getByLabel('Begin with a byte order mark').check()
  for (const [place, field, heading] of [
    ['1', 'Booked', '=Datum'],
    ['2', 'Order', 'Beleg "1"; 2'],
    ['4', 'Value', ''],
    ['5', 'What', 'Text'],
  ] as const) {
    await page.locator(`[name=field${Number.parseInt(place, 10) - 1}]`).selectOption(field)
    await page.getByLabel(`Heading ${place}`, { exact: true }).fill(heading)
  }
  await page.getByRole('button', { name: 'Save the format' }).click()
  const download = async () => {
    await page.goto(`${console.url}${path}?month=2026-10`)
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'DATEV <b>Kanzlei</b>' }).click(),
    ])
    assert.equal(file.suggestedFilename(), 'mapping-1-2026-10.csv')
    return await readFile(await file.path(), 'utf8')
  }
  const text = await download()
  assert(text.startsWith('\ufeff'))
  assert.deepEqual(readCsv(text.slice(1), ';'), [
    ["'=Datum", 'Beleg "1"; 2', 'Value', 'Text'],
    ['10.10.2026', `'=1+1;"x"\nnext`, '-11,30', 'Payment'],
    ['10.10.2026', 'Müller 😀', '12,50', 'Payment'],
  ])
  await page.getByRole('link', { name: 'change' }).click()
  assert.equal(await page.getByLabel('Heading 2', { exact: true }).inputValue(), 'Beleg "1"; 2')
  await page.getByLabel('Between columns').selectOption('Tab')
  await page.locator('[name=field0]').selectOption('')
  await page.getByLabel('Begin with a byte order mark').uncheck()
  await page.getByRole('button', { name: 'Save the format' }).click()
  assert.deepEqual(readCsv(await download(), '\t')[2], ['Müller 😀', '12,50', 'Payment'])
  await page.getByRole('link', { name: 'change' }).click()
  await page.getByRole('button', { name: 'Delete this format' }).click()
  await page.getByRole('link', { name: 'Make a format of your own' }).waitFor()
  assert.equal(await page.getByRole('link', { name: 'DATEV' }).count(), 0)
  await page.context().close()
})

test('a viewer uses a format and changes none, and a stranger’s store has none of them', async () => {
  const [mine, other] = [await openShop(), await openShop()]
  assert.equal((await mine.post(smallest)).headers.location, mine.path)
  await bookAt(farthing, '2026-10-10T10:00:00Z', [lineOf(mine.store.id)])
  const viewer = await enrolWith(
    console,
    await inviteBy(mine.owner, mine.store.id, { name: 'Vera', role: 'viewer' }),
  )
  const { body } = await viewer.browser.get(`${mine.path}?month=2026-10`)
  assert(body.includes('mapping=1') && !body.includes('reports/mapping'))
  const file = await viewer.browser.get(`${mine.path}/export?month=2026-10&mapping=1`)
  assert.equal(file.body, 'Line\r\n1\r\n')
  assert.equal(
    (await viewer.browser.post(`${mine.path}/mapping`, { ...smallest, place: '1' })).statusCode,
    403,
  )
  assert.equal((await viewer.browser.post(`${mine.path}/mapping/delete`, { place: '1' })).statusCode, 403)
  const { browser } = other.owner
  assert.equal((await browser.get(`${mine.path}/export?month=2026-10&mapping=1`)).statusCode, 404)
  assert.equal((await browser.get(`${other.path}/export?month=2026-10&mapping=1`)).statusCode, 404)
  assert.equal((await browser.get(`${other.path}/mapping?place=1`)).statusCode, 404)
  assert.equal((await other.post({ ...smallest, place: '1' })).statusCode, 404)
  assert.equal((await browser.post(`${other.path}/mapping/delete`, { place: '1' })).statusCode, 303)
  assert.equal((await viewer.browser.get(`${mine.path}/export?month=2026-10&mapping=1`)).body, file.body)
})

test('a store has at most ten formats, and what no format can be is refused in words', async () => {
  const { owner, path, post } = await openShop()
  const refused = async (change: Record<string, string>, why: RegExp) => {
    const answer = await post({ ...smallest, ...change })
    assert(answer.statusCode >= 400 && answer.statusCode < 500, JSON.stringify(change))
    assert.match(answer.body, why)
  }
  await refused({ name: '' }, /Name: must be 1 to 100 bytes/)
  await refused({ name: 'é'.repeat(51) }, /Name: must be 1 to 100 bytes/)
  await refused({ name: 'a\u202eb' }, /must not contain control characters/)
  await refused({ heading0: 'a\r\n=1' }, /Heading: must not contain control characters/)
  await refused({ field0: '' }, /at least one field/)
  await refused({ field0: 'constructor' }, /at least one field/)
  for (const place of ['0', '11', '-1', '1e1', 'x'])
    assert.equal((await post({ ...smallest, place })).statusCode, 404, place)
  for (let i = 1; i <= 10; i++)
    assert.equal(
      (await post({ ...smallest, name: `=${i}"><script>`, delimiter: 'x', dates: 'x' })).statusCode,
      303,
    )
  await refused({}, /ten formats already/)
  const { body } = await owner.browser.get(path)
  assert(!body.includes('"><script>'))
  await owner.browser.post(`${path}/mapping/delete`, { place: '4' })
  assert.equal((await post(smallest)).statusCode, 303)
})
