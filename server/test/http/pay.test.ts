/** What programs read around the terms: who sells, until when, where the docs are, and what a wrong header gets. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PaymentRequired } from '@farthing/sdk'
import { openTestApp } from '../support/app.ts'
import { completeByHand, encodePayment, paymentFor } from '../support/by-hand.ts'
import { openStore, send } from '../support/store.ts'

const farthing = await openTestApp()
const shop = await openStore(farthing)
const link = '<https://farthing.example/llms.txt>; rel="describedby"; type="text/plain"'
const doors = ['/api/v1/checkouts', '/c'] as const
const post = (path: string, headers: Record<string, string> = {}) =>
  send(farthing.app, 'POST', path, undefined, headers)
const claimsOf = (id: string) =>
  farthing.ctx.db.query('select nonce from authorizations where checkout_id = $1', [id])

test('the terms name the store, the price and the end, and point to the docs for programs', async () => {
  await shop.call('PATCH', `/api/v1/stores/${shop.id}`, { name: 'Tea House' })
  const { id, expiresAt } = await shop.create({ orderId: '1042', priceAmount: '8.00' })
  const until = expiresAt.replace(/\.\d+Z$/, 'Z')
  for (const door of doors) {
    const answer = await post(`${door}/${id}`)
    assert.equal(answer.statusCode, 402)
    assert.equal(
      answer.json<PaymentRequired>().resource.description,
      `Checkout ${id} of Tea House: 8.00 USD for order 1042, payable until ${until}`,
    )
    assert.equal(answer.headers.link, link)
    assert.equal((await post(`${door}/${id}`, { 'payment-signature': '?' })).headers.link, link)
  }
  assert.equal((await send(farthing.app, 'GET', '/llms.txt')).statusCode, 200)
})

test('version 1’s X-PAYMENT charges nothing, and the answer says which header and version to use', async () => {
  const { id } = await shop.create()
  const terms = (await post(`/c/${id}`)).json<PaymentRequired>()
  const payment = encodePayment(paymentFor(terms))
  for (const door of doors) {
    const answer = await post(`${door}/${id}`, { 'x-payment': payment })
    assert.equal(answer.statusCode, 402)
    const { error = '', ...rest } = answer.json<PaymentRequired>()
    assert.match(error, /X-PAYMENT is a header of x402 version 1.*version 2.*PAYMENT-SIGNATURE/)
    assert.deepEqual(rest.accepts, terms.accepts)
    assert.equal(answer.headers['payment-response'], undefined)
    assert.equal(
      (await post(`${door}/${id}`, { 'x-payment': payment, 'payment-signature': '?' })).statusCode,
      400,
    )
  }
  assert.deepEqual(await claimsOf(id), [])
  await completeByHand(farthing, id)
  assert.equal((await post(`/c/${id}`, { 'x-payment': payment })).statusCode, 200)
})

test('HEAD gets the status and headers of GET for the same Accept, and never charges', async () => {
  const [open, paid] = [await shop.create(), await shop.create()]
  await completeByHand(farthing, paid.id)
  const payment = encodePayment(paymentFor((await post(`/c/${open.id}`)).json()))
  for (const id of [open.id, paid.id, `ch_00${'0'.repeat(26)}`])
    for (const accept of ['*/*', 'application/json', 'text/html,application/xhtml+xml,*/*;q=0.8']) {
      const url = `/c/${id}`
      const get = await farthing.request({ method: 'GET', url, headers: { accept } })
      for (const headers of [{ accept }, { accept, 'payment-signature': payment }]) {
        const head = await farthing.request({ method: 'HEAD', url, headers })
        assert.equal(head.statusCode, get.statusCode, `${id} ${accept}`)
        assert.equal(head.body, '')
        const { date: _, 'x-request-id': __, ...expected } = get.headers
        const { date: ___, 'x-request-id': ____, ...got } = head.headers
        assert.deepEqual(got, expected)
      }
    }
  assert.deepEqual(await claimsOf(open.id), [])
})
