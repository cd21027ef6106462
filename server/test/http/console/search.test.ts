/** The search: what people type, how it is read, and what it finds. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { dateIn } from '../../../src/http/console/payments/dates.ts'
import { readSearch } from '../../../src/http/console/payments/search.ts'
import { completeByHand, creditByHand, payer, refundByHand, setStatus } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { enrolWith, openConsole, openInvitedStore } from './support/console.ts'

const console = await openConsole()
const { farthing } = console
const { db } = farthing.ctx

async function openShop() {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const owner = await enrolWith(console, token)
  const base = `/stores/${store.id}`
  const find = async (text: string) =>
    await owner.browser.get(`${base}/payments?${new URLSearchParams({ q: text })}`)
  return { store, owner, base, find }
}

async function fill({ store }: Awaited<ReturnType<typeof openShop>>) {
  const price = async (id: string, currency: string, amount: string, day: string) =>
    await db.query(
      `update checkouts set price_currency = $2, price_amount = $3, rate = '{"perBase":"1","usdPerBase":"1.0834"}',
         created_at = $4::timestamptz, expires_at = $4::timestamptz + interval '1 day' where id = $1`,
      [id, currency, amount, day],
    )
  const mug = await store.create({
    orderId: '1273',
    priceAmount: '48.27',
    description: 'Blue mug, 100% large_cup',
    metadata: { email: 'ana@example.com' },
  })
  await price(mug.id, 'EUR', '44.30', '2026-11-16T12:00:00Z')
  const transaction = await completeByHand(farthing, mug.id)
  await refundByHand(farthing, mug.id, 'REQUESTED')
  const lamp = await store.create({ orderId: 'order-88', priceAmount: '1234.5', description: 'Lamp' })
  const stray = await creditByHand(farthing, lamp.id)
  await setStatus(farthing, lamp.id, 'EXPIRED')
  const [refund] = await db.query<{ id: string }>('select id from refunds where checkout_id = $1', [mug.id])
  assert(refund)
  return { mug: mug.id, lamp: lamp.id, stray, transaction, refund: refund.id }
}

test('forty things that people type or paste are found, and the page says what each was taken for', async () => {
  const shop = await openShop()
  const { mug, lamp, stray, transaction, refund } = await fill(shop)
  const short = `${payer.slice(0, 6)}…${payer.slice(-4)}`
  const today = new Date().toISOString().slice(0, 10)
  const [orders, prices, sums] = ['Checkouts of the order', 'Checkouts for about', 'Payments of about']
  const [hashes, addresses, shorts] = ['Payments in the', 'Payments from the', 'looks like']
  const [words, days] = ['in the order, the description or the metadata', 'Checkouts from:']
  const table: readonly (readonly [typed: string, read: string | null, found: string])[] = [
    ['1273', orders, mug],
    ['#1273', orders, mug],
    ['Order 1273', orders, mug],
    ['order #1273', orders, mug],
    ['Order no. 1273', orders, mug],
    ['Pedido nº 1273', orders, mug],
    [' 1273 ', orders, mug],
    ['order-88', orders, lamp],
    ['88', orders, lamp],
    ['44.30', prices, mug],
    ['44,30', prices, mug],
    ['€44.30', prices, mug],
    ['44,30 €', prices, mug],
    ['44.30 EUR', prices, mug],
    ['eur 44.3', prices, mug],
    ['44', prices, mug],
    ['1234.50', prices, lamp],
    ['$1,234.50', prices, lamp],
    ['US$ 1234.5', prices, lamp],
    ['1 234,50', prices, lamp],
    ['48.27 USDC', sums, mug],
    ['48.27', sums, mug],
    ['1234.500001 usdc', sums, stray],
    [today, days, mug],
    ['today', days, lamp],
    ['blue mug', words, mug],
    ['MUG', words, mug],
    ['large cup', words, ''],
    ['large_cup', words, mug],
    ['100%', words, mug],
    ['ana@example.com', words, mug],
    [payer, addresses, mug],
    [payer.toLowerCase(), addresses, stray],
    [payer.slice(2), addresses, mug],
    [short, shorts, mug],
    [short.replace('…', '...'), shorts, stray],
    [`https://basescan.org/address/${payer}`, addresses, mug],
    [`https://basescan.org/token/0x${'12'.repeat(20)}?a=${payer}`, addresses, mug],
    [transaction, hashes, mug],
    [transaction.slice(2), hashes, mug],
    [`https://basescan.org/tx/${transaction}#eventlog`, hashes, mug],
    [`${transaction.slice(0, 6)}…${transaction.slice(-4)}`, shorts, mug],
    [mug, null, `checkouts/${mug}`],
    [`https://pay.example/c/${mug}?option=1`, null, `checkouts/${mug}`],
    [`Questions? Contact the store and quote ${mug}.`, null, `checkouts/${mug}`],
    [stray, null, `payments/${stray}`],
    [refund, null, `refunds/${refund}`],
  ]
  for (const [typed, read, found] of table) {
    const { body, headers } = await shop.find(typed)
    if (read === null) {
      assert.equal(headers.location, `${shop.base}/${found}`, typed)
      continue
    }
    assert(found === '' || body.includes(`/${found}"`), `${typed} does not find it`)
    assert(body.includes(read), `${typed} is not read as: ${read}`)
  }
})

test('nothing of another store is found, whatever is typed', async () => {
  const [mine, theirs] = [await openShop(), await openShop()]
  const { mug, stray, transaction, refund } = await fill(theirs)
  for (const typed of [
    '1273',
    '44.30',
    '48.27 USDC',
    'mug',
    'today',
    payer,
    transaction,
    mug,
    stray,
    refund,
  ]) {
    const { statusCode, body } = await mine.find(typed)
    assert.equal(statusCode, 200, typed)
    for (const id of [mug, stray, refund]) assert(!body.includes(`/${id}"`), `${typed} finds ${id}`)
  }
})

test('what was typed can be read in another way by a link, and that reading is paged and exported', async () => {
  const { store, base, find, owner } = await openShop()
  const byOrder = await store.create({ orderId: '12.5', priceAmount: '1' })
  const made = await Promise.all(Array.from({ length: 26 }, () => store.create({ priceAmount: '12.5' })))
  const linkIn = (body: string, form: RegExp) =>
    `${base}/payments${form.exec(body)?.[1]?.replaceAll('&#38;', '&') ?? assert.fail(String(form))}`
  const { body } = await find('12.5')
  assert(body.includes('Checkouts of the order') && body.includes(byOrder.id))
  const first = (await owner.browser.get(linkIn(body, /payments(\?[^"]*as=price)"/))).body
  const second = (await owner.browser.get(linkIn(first, /payments(\?[^"]*as=price[^"]*cursor=[^"]*)"/))).body
  const listed = (page: string) => [...page.matchAll(/\/checkouts\/(ch_\w+)"/g)].map(([, id]) => id)
  assert.deepEqual([...listed(first), ...listed(second)].toSorted(), made.map(({ id }) => id).toSorted())
  const rows = (await owner.browser.get(linkIn(first, /payments(\/export\?[^"]*)"/))).body
  for (const { id } of made) assert(rows.includes(id))
  assert(!rows.includes(byOrder.id))
})

test('a date is read as people and lists write it; what is no date is not', () => {
  const now = new Date('2026-11-19T10:00:00Z')
  const read = (text: string, tag = 'en-GB', timeZone = 'UTC') => {
    const days = dateIn(text, { tag, timeZone }, now)
    return days && (days.from === days.to ? days.from : `${days.from} ${days.to}`)
  }
  for (const [text, day, tag] of [
    ['2026-11-16', '2026-11-16'],
    ['2026-11-16T12:30:00Z', '2026-11-16'],
    ['16.11.2026', '2026-11-16'],
    ['16/11/2026', '2026-11-16'],
    ['11/16/2026', '2026-11-16', 'en-US'],
    ['16/11', '2026-11-16'],
    ['16 Nov', '2026-11-16'],
    ['Nov 16, 10:26 AM', '2026-11-16'],
    ['16 Nov 2026, 10:26', '2026-11-16'],
    ['November 16th, 2026', '2026-11-16'],
    ['16 de noviembre de 2026', '2026-11-16', 'es'],
    ['16 nov', '2026-11-16', 'es'],
    ['25 Dec', '2025-12-25'],
    ['today', '2026-11-19'],
    ['Yesterday', '2026-11-18'],
    ['ayer', '2026-11-18', 'es'],
    ['November 2026', '2026-11-01 2026-11-30'],
    ['2026-02', '2026-02-01 2026-02-28'],
    ['2026-02-30', null],
    ['10.11', null],
    ['31/11/2026', null],
    ['Nov', '2026-11-01 2026-11-30'],
    ['mug of Nov', null],
    ['16', null],
    ['', null],
  ] as const)
    assert.equal(read(text, tag), day, text)
  assert.equal(read('today', 'en-GB', 'Pacific/Auckland'), '2026-11-19')
  assert.equal(read('today', 'en-GB', 'Pacific/Honolulu'), '2026-11-19')
})

test('no text makes the search fail, and each is read as something, unless it is empty', async () => {
  const shop = await openShop()
  const locale = { tag: 'en-GB', timeZone: 'UTC' }
  const text = fc.oneof(
    fc.string({ maxLength: 300 }),
    fc.string({ unit: 'binary', maxLength: 50 }),
    fc.stringMatching(/^[€$£#]?[0-9.,' ]{1,30}( ?[A-Z]{3,4})?$/),
    fc.stringMatching(/^[%_\\]{1,9}$/),
  )
  await fc.assert(
    fc.asyncProperty(text, async (typed) => {
      readSearch(typed, locale, new Date())
      assert.equal((await shop.find(typed)).statusCode, 200)
    }),
    { numRuns: 60, examples: [['\0'], ['a\0b'], ['0x\0'], ['\u2028']] },
  )
})
