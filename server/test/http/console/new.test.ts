/** A payment asked for by hand: one link per form, under the member's name. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Link } from '@farthing/sdk'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { enrolWith, openConsole, openInvitedStore } from './support/console.ts'

const console = await openConsole({ settings: { FIXED_RATES: 'EUR=0.8' } })
const dayMs = 86_400_000

async function openShop(evmWallet: string | null = newPayer().address) {
  const { store, token } = await openInvitedStore(console, { evmWallet })
  const owner = await enrolWith(console, token)
  const path = `/stores/${store.id}/new`
  const list = async () => (await store.call('GET', '/api/v1/links')).json<{ data: Link[] }>().data
  /** Sends a form and returns the link that it made. */
  const make = async (fields: Readonly<Record<string, string>>): Promise<Link> => {
    const key = keyIn((await owner.browser.get(path)).body)
    const sent = await owner.browser.post(path, {
      key,
      title: 'Tea',
      amount: '5',
      currency: 'USD',
      ...fields,
    })
    assert.equal(sent.statusCode, 303, sent.body.slice(0, 300))
    const id = String(sent.headers.location).split('/').at(-1)
    return (await store.call('GET', `/api/v1/links/${id}`)).json<Link>()
  }
  return { store, browser: owner.browser, path, list, make }
}

function keyIn(body: string): string {
  return /name="key" value="([^"]+)"/.exec(body)?.[1] ?? assert.fail('no key in the form')
}

function daysUntil({ until, createdAt }: Link): number {
  return (Date.parse(until) - Date.parse(createdAt)) / dayMs
}

test('what for and how much make one link however often the form is sent, for a week and one buyer', async () => {
  const { store, browser, path, list } = await openShop()
  const key = keyIn((await browser.get(path)).body)
  const fields = { key, title: 'Two cups <hot>', amount: '4,50', currency: 'EUR', until: '7', kind: 'once' }
  const sent = await Promise.all([browser.post(path, fields), browser.post(path, fields)])
  const [location = assert.fail(), ...others] = new Set(sent.map(({ headers }) => String(headers.location)))
  assert.deepEqual(others, [])
  const [link = assert.fail(), ...more] = await list()
  assert.deepEqual([more, location], [[], `/stores/${store.id}/links/${link.id}`])
  assert.deepEqual(
    [link.title, link.priceAmount, link.priceCurrency, link.kind, Math.round(daysUntil(link))],
    ['Two cups <hot>', '4.50', 'EUR', 'once', 7],
  )
  const created = (await store.events()).filter(({ type }) => type === 'link.created')
  assert.deepEqual(
    created.map(({ actor }) => [actor?.type, actor?.name]),
    [['member', 'Olga']],
  )
  const reused = await browser.post(path, { ...fields, amount: '5' })
  assert.equal(reused.statusCode, 422)
  assert(reused.body.includes('already') && keyIn(reused.body) !== key)
})

test('a link is payable for a day, a month, or to the end of a day in the store’s zone, by one buyer or many', async () => {
  const { make } = await openShop()
  assert.equal(Math.round(daysUntil(await make({ until: '1' }))), 1)
  const many = await make({ until: '30', kind: 'many' })
  assert.deepEqual([Math.round(daysUntil(many)), many.kind], [30, 'many'])
  const date = new Date(Date.now() + 40 * dayMs).toISOString().slice(0, 10)
  const { until } = await make({ until: 'date', date })
  assert.equal(until, new Date(Date.parse(date) + dayMs).toISOString())
})

test('invoice details make an invoice of the amount, or of its lines', async () => {
  const { make } = await openShop()
  const buyer = { buyerName: 'Ana Díaz', buyerAddress: 'Calle Mayor 1\r\n28013 Madrid', due: '2026-12-31' }
  const one = await make({ number: '2026-1', taxRate: '21', taxIncluded: 'yes', amount: '121', ...buyer })
  assert.deepEqual([one.invoice?.number, one.invoice?.gross, one.invoice?.tax], ['2026-1', '121.00', '21.00'])
  assert.deepEqual(one.invoice?.lines, [{ text: 'Tea', quantity: '1', unitAmount: '121', taxRate: '21' }])
  assert.deepEqual(
    [one.invoice?.buyerName, one.invoice?.buyerAddress, one.invoice?.dueDate],
    ['Ana Díaz', 'Calle Mayor 1\n28013 Madrid', '2026-12-31'],
  )
  const lines = {
    text0: 'Teapot',
    unitAmount0: '40',
    text2: 'Tea, 100 g',
    quantity2: '3',
    unitAmount2: '4,95',
    taxRate2: '10',
  }
  // Whatever was chosen, or not chosen, it is payable when it is due.
  assert.equal(one.until, '2027-01-01T00:00:00.000Z')
  const soon = await make({ number: '2026-3', due: new Date(Date.now() + dayMs).toISOString().slice(0, 10) })
  assert.equal(Math.round(daysUntil(soon)), 7)
  const two = await make({ number: '2026-2', amount: '', taxRate: '21', ...lines })
  assert.equal(two.invoice?.gross, '64.74')
})

test('what cannot be made is said in words, and what was entered stays', async () => {
  const { browser, path, list } = await openShop()
  const key = keyIn((await browser.get(path)).body)
  const send = (fields: Readonly<Record<string, string>>) =>
    browser.post(path, { key, title: 'tea', amount: '1', currency: 'USD', until: '7', ...fields })
  for (const [fields, sentence] of [
    [{ amount: '0' }, 'an amount above zero'],
    [{ amount: '' }, 'an amount above zero'],
    [{ amount: '1.2345678' }, 'an amount above zero'],
    [{ currency: 'XX' }, 'Choose a currency'],
    [{ title: '' }, 'what it is for'],
    [{ title: 'é'.repeat(101) }, 'what it is for'],
    [{ title: 'a\u0007' }, 'what it is for'],
    [{ until: 'date', date: '' }, 'Choose a last day'],
    [{ until: 'date', date: '2020-01-01' }, 'Choose a last day'],
    [{ until: 'date', date: '2999-01-01' }, 'Choose a last day'],
    [{ number: '7', kind: 'many' }, 'An invoice is paid once'],
    [{ taxRate: '21' }, 'a number is needed'],
    [{ number: '7', taxRate: '101' }, 'tax is from 0 to 100'],
  ] as const) {
    const { statusCode, body } = await send(fields)
    assert.equal(statusCode, 422, sentence)
    assert(body.includes(sentence) && keyIn(body) === key, `${JSON.stringify(fields)} ${body.slice(0, 200)}`)
  }
  assert.match((await send({ amount: '0' })).body, /name="title" value="tea"/)
  assert.match((await send({ amount: '0', buyerName: 'Ana' })).body, /<details id="invoice" open>/)
  assert.equal((await send({ key: 'x' })).statusCode, 422)
  assert.deepEqual(await list(), [])
  assert.equal((await send({ number: '7' })).statusCode, 303)
  const taken = await browser.post(path, {
    key: 'c'.repeat(26),
    title: 'tea',
    amount: '1',
    currency: 'USD',
    number: '7',
  })
  assert.match(taken.body, /role="alert">The store has an invoice with this number/)
})

test('an amount that could be thousands or decimals makes nothing: the clerk is asked to write it clearly', async () => {
  const { browser, path, list } = await openShop()
  const key = keyIn((await browser.get(path)).body)
  const fields = { key, currency: 'USD', title: 'tea' }
  for (const amount of ['1,500', '1.500', '12,345']) {
    const { statusCode, body } = await browser.post(path, { ...fields, amount })
    assert.equal(statusCode, 422, amount)
    assert.match(body, /role="alert">This amount can be read in two ways/)
    assert(body.includes(`value="${amount}"`) && keyIn(body) === key)
    assert(!body.includes('&#34;1.500&#34;'), 'nor is it guessed in the example of the API')
  }
  const spanish = await browser.post(`${path}?lang=es`, { ...fields, amount: '1.500' })
  assert.match(spanish.body, /role="alert">Este importe se puede leer de dos maneras/)
  assert.deepEqual(await list(), [])
  assert.equal((await browser.post(path, { ...fields, amount: '1500' })).statusCode, 303)
})

test('a checkout that expired or was canceled can be made again, with what it was for and how much', async () => {
  const { store, browser, path } = await openShop()
  const { id } = await store.create({ priceAmount: '4.50', priceCurrency: 'EUR', description: 'Two cups' })
  const screen = `/stores/${store.id}/checkouts/${id}`
  assert(!(await browser.get(screen)).body.includes('Make it again'))
  await store.call('POST', `/api/v1/checkouts/${id}/cancel`)
  assert((await browser.get(screen)).body.includes(`href="${path}?again=${id}">Make it again`))
  const { body } = await browser.get(`${path}?again=${id}`)
  assert.match(body, /name="title" value="Two cups"/)
  assert.match(body, /name="amount" value="4\.50"/)
  assert.match(body, /<option value="EUR" selected>/)
  const other = await openShop()
  const theirs = await other.store.create({ description: 'Secret' })
  for (const again of ['x', theirs.id])
    assert.match((await browser.get(`${path}?again=${again}`)).body, /name="title" value=""/)
})

test('a store without a wallet is told what to do first', async () => {
  const { store, browser, path } = await openShop(null)
  const { body } = await browser.get(path)
  assert(body.includes('First, say where the money goes') && body.includes(`/stores/${store.id}/wallets`))
  assert((await browser.get(`${path}?lang=es`)).body.includes('Primero, diga adónde va el dinero'))
})
