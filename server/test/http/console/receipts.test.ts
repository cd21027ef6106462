/** A buyer's receipt in the console: on its payment's screen, and by its number in the search. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { numberAll, payOne, reverse } from '../../checkouts/buyer-receipts/support/receipts.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { enrolWith, openConsole, openInvitedStore } from './support/console.ts'

const console = await openConsole()
const { farthing } = console
const pages = farthing.ctx.config.checkoutPageUrl

async function openShop() {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const { browser } = await enrolWith(console, token)
  const base = `/stores/${store.id}`
  return {
    store,
    base,
    browser,
    find: (q: string) => browser.get(`${base}/payments?${new URLSearchParams({ q })}`),
  }
}

async function numberOf(checkoutId: string): Promise<string> {
  const { body } = await farthing.request({ url: `${new URL(pages).pathname}/${checkoutId}/receipt` })
  return /20\d\d-\d{6}/.exec(body)?.[0] ?? assert.fail('no number')
}

test('a payment’s screen shows the receipt’s number, leads to the receipt, and says once it is void', async () => {
  const { store, base, browser } = await openShop()
  const id = await payOne(farthing, store)
  await numberAll(farthing)
  const number = await numberOf(id)
  const link = `href="${pages}/${id}/receipt" rel="noreferrer" target="_blank">${number}</a>`
  const before = (await browser.get(`${base}/checkouts/${id}`)).body
  assert(before.includes(link))
  assert.doesNotMatch(before, /took the payment back/)
  await reverse(farthing, id)
  await numberAll(farthing)
  const after = (await browser.get(`${base}/checkouts/${id}`)).body
  assert(after.includes(link))
  assert.match(after, /void: the chain took the payment back/)
})

test('the search finds a receipt by its number, alone or in a sentence, and an order of the same text otherwise', async () => {
  const { store, base, find } = await openShop()
  const id = await payOne(farthing, store, 'A-1')
  await numberAll(farthing)
  const number = await numberOf(id)
  for (const text of [number, ` ${number} `, `Receipt number: ${number}.`, `${number}\u0000`])
    assert.equal((await find(text)).headers.location, `${base}/checkouts/${id}`, text)
  const order = await store.create({ orderId: '2026-000999' })
  const { body } = await find('2026-000999')
  assert(body.includes(order.id))
  assert.match(body, /Checkouts of the order/)
})

test('another store’s receipt is not found, although its number is the same', async () => {
  const [one, other] = [await openShop(), await openShop()]
  const [first, second] = [await payOne(farthing, one.store), await payOne(farthing, one.store)]
  const theirs = await payOne(farthing, other.store)
  await numberAll(farthing)
  const numbers = [await numberOf(first), await numberOf(second)]
  assert.equal(await numberOf(theirs), numbers[0])
  assert.equal((await other.find(numbers[0] ?? '')).headers.location, `${other.base}/checkouts/${theirs}`)
  const { statusCode, body } = await other.find(numbers[1] ?? '')
  assert.equal(statusCode, 200)
  assert(!body.includes(second) && !body.includes(first))
})
