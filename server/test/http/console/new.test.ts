/** A payment made by hand: one link per form, under the member's name, watched and canceled. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { completeByHand, setStatus } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { enrolWith, openConsole, openInvitedStore } from './support/console.ts'

const console = await openConsole({ settings: { FIXED_RATES: 'EUR=0.8' } })
const { farthing } = console

async function openShop(evmWallet: string | null = newPayer().address) {
  const { store, token } = await openInvitedStore(console, { evmWallet })
  const owner = await enrolWith(console, token)
  return { store, browser: owner.browser, path: `/stores/${store.id}/new` }
}

function keyIn(body: string): string {
  return /name="key" value="([^"]+)"/.exec(body)?.[1] ?? assert.fail('no key in the form')
}

test('an amount and a description make one checkout however often the form is sent, with its link and code', async () => {
  const { store, browser, path } = await openShop()
  const key = keyIn((await browser.get(path)).body)
  const fields = { key, amount: '4,50', currency: 'EUR', description: 'Two cups <hot>' }
  const sent = await Promise.all([browser.post(path, fields), browser.post(path, fields)])
  const [location = assert.fail(), ...others] = new Set(sent.map(({ headers }) => String(headers.location)))
  assert.deepEqual(others, [])
  const id = location.split('/').at(-1)
  const made = (await store.call('GET', `/api/v1/checkouts/${id}`)).json()
  assert.deepEqual(
    [made.priceAmount, made.priceCurrency, made.description, made.orderId],
    ['4.50', 'EUR', 'Two cups <hot>', `link-${key.slice(0, 8)}`],
  )
  const created = (await store.events()).filter(({ type }) => type === 'checkout.created')
  assert.deepEqual(
    created.map(({ actor }) => [actor?.type, actor?.name]),
    [['member', 'Olga']],
  )
  const { body } = await browser.get(location)
  for (const each of [
    '€4.50',
    'Two cups &#60;hot&#62;',
    made.checkoutUrl,
    '<svg class="qr"',
    'Waiting',
    'data-live=',
  ])
    assert(body.includes(each), each)
  const reused = await browser.post(path, { ...fields, amount: '5' })
  assert.equal(reused.statusCode, 422)
  assert(reused.body.includes('already') && keyIn(reused.body) !== key)
})

test('the screen says what became of it; it can be canceled from there and then paid no more', async () => {
  const { store, browser, path } = await openShop()
  const open = await store.create()
  const shown = async (id: string) => {
    const { body } = await browser.get(`${path}/${id}`)
    return [/<p class="state \w*">([^<]+)/.exec(body)?.[1], body.includes('<svg class="qr"')]
  }
  assert.deepEqual(await shown(open.id), ['Waiting', true])
  const canceled = await browser.post(`/stores/${store.id}/checkouts/${open.id}/cancel`, { from: 'new' })
  assert.equal(canceled.headers.location, `${path}/${open.id}`)
  assert.deepEqual(await shown(open.id), ['Canceled', false])
  const paid = await store.create()
  await setStatus(farthing, paid.id, 'PROCESSING')
  assert.deepEqual(await shown(paid.id), ['Settling', false])
  await completeByHand(farthing, paid.id)
  assert.deepEqual(await shown(paid.id), ['Paid', false])
  for (const id of ['x', (await (await openShop()).store.create()).id])
    assert.equal((await browser.get(`${path}/${id}`)).statusCode, 404)
})

test('what cannot be made is said in words, and what was entered stays', async () => {
  const { browser, path } = await openShop()
  const key = keyIn((await browser.get(path)).body)
  const send = (fields: Readonly<Record<string, string>>) =>
    browser.post(path, { key, amount: '1', currency: 'USD', description: 'tea', ...fields })
  for (const [fields, sentence] of [
    [{ amount: '0' }, 'an amount above zero'],
    [{ amount: '1.2345678' }, 'an amount above zero'],
    [{ currency: 'XX' }, 'Choose a currency'],
    [{ currency: 'JPY' }, 'rate for this currency'],
    [{ description: 'é'.repeat(251) }, 'description is too long'],
    [{ order: 'a\u0007' }, 'order number'],
  ] as const) {
    const { statusCode, body } = await send(fields)
    assert.equal(statusCode, 422, sentence)
    assert(body.includes(sentence) && keyIn(body) === key, `${JSON.stringify(fields)} ${body}`)
  }
  assert.match((await send({ amount: '0' })).body, /name="description" value="tea"/)
  assert.equal((await send({ key: 'x' })).statusCode, 422)
})

test('an amount that could be thousands or decimals makes nothing: the clerk is asked to write it clearly', async () => {
  const { store, browser, path } = await openShop()
  const key = keyIn((await browser.get(path)).body)
  const fields = { key, currency: 'USD', description: 'tea' }
  for (const amount of ['1,500', '1.500', '12,345']) {
    const { statusCode, body } = await browser.post(path, { ...fields, amount })
    assert.equal(statusCode, 422, amount)
    assert.match(body, /role="alert">This amount can be read in two ways/)
    assert(body.includes(`value="${amount}"`) && keyIn(body) === key)
    assert(!body.includes('&#34;1.500&#34;'), 'nor is it guessed in the example of the API')
  }
  const spanish = await browser.post(`${path}?lang=es`, { ...fields, amount: '1.500' })
  assert.match(spanish.body, /role="alert">Este importe se puede leer de dos maneras/)
  assert.equal((await store.call('GET', '/api/v1/checkouts')).json().data.length, 0)
  const made = await browser.post(path, { ...fields, amount: '1500' })
  assert.equal(made.statusCode, 303)
})

test('a store without a wallet is told what to do first', async () => {
  const { store, browser, path } = await openShop(null)
  const { body } = await browser.get(path)
  assert(body.includes('First, say where the money goes') && body.includes(`/stores/${store.id}/wallets`))
  assert((await browser.get(`${path}?lang=es`)).body.includes('Primero, diga adónde va el dinero'))
})
