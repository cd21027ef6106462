/** Programs pay at a link's address, on a chain. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Link, PaymentRequired, StoreCheckout } from '@farthing/sdk'
import { pay } from '@farthing/sdk/pay'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { isBoundTo } from '../../../src/payments/nonces.ts'
import { openNeighbour } from '../../support/app.ts'
import { setStatus } from '../../support/by-hand.ts'
import { newPayer, type Payer, paymentHeader } from '../../support/chain/evm-payment.ts'
import { dumpRows } from '../../support/dump.ts'
import { openShop, payTo } from '../../support/shop.ts'
import { type Answer, assertProblem, send } from '../../support/store.ts'
import { eventsOf, letExpire, untilReady, untilStatus } from '../../support/watch.ts'
import { newInvoice, newLink } from '../support/new-link.ts'
import { checkoutIn, makeLink, openBuyer } from './support/buyer.ts'

const shop = await openShop({ settings: { FIXED_RATES: 'EUR=0.5' } })
const { app, ctx, clock } = shop
const buyer = openBuyer(app)
const api = {
  call: (method: 'GET' | 'POST' | 'PATCH', path: string, body?: unknown) =>
    send(app, method, path, body, { 'x-api-key': shop.key }),
}
const make = (change: object = {}) => makeLink(api, newLink({ priceAmount: '0.50', ...change }))
const makeMany = (change: object = {}) => make({ kind: 'many', ...change })
const patch = async ({ id }: Link, body: object) => await api.call('PATCH', `/api/v1/links/${id}`, body)
const readLink = async ({ id }: Link) => (await api.call('GET', `/api/v1/links/${id}`)).json<Link>()
const list = async ({ id }: Link) =>
  (await api.call('GET', `/api/v1/checkouts?linkId=${id}`)).json<{ data: StoreCheckout[] }>().data

let addresses = 0
/** A request to a link's address. Bad payments slow down the client address they come from, so each has its own. */
async function ask(
  link: Pick<Link, 'url'>,
  header?: string,
  query = '',
  method: 'GET' | 'POST' = 'GET',
): Promise<Answer> {
  addresses += 1
  return await app.inject({
    method,
    url: `${new URL(link.url).pathname}${query}`,
    headers: header === undefined ? {} : { 'payment-signature': header },
    remoteAddress: `10.1.${addresses >> 8}.${addresses % 256}`,
  })
}

async function termsOf(link: Pick<Link, 'url'>, query = ''): Promise<PaymentRequired> {
  const answer = await ask(link, undefined, query)
  assert.equal(answer.statusCode, 402, answer.body)
  return answer.json()
}

function quoteIn({ accepts: [first] }: PaymentRequired): string {
  return first?.extra.quote ?? assert.fail('there is no quote')
}

/** The same terms with another quote. */
function withQuote(terms: PaymentRequired, quote: string | undefined): PaymentRequired {
  const accepts = terms.accepts.map((each) => ({ ...each, extra: { ...each.extra, quote } }))
  return { ...terms, accepts: accepts as PaymentRequired['accepts'] }
}

async function paidBy({ address }: Pick<Payer, 'address'>): Promise<bigint[]> {
  return (await shop.chain.transferLogs({ from: address, to: payTo })).map(({ args }) => args.value)
}

async function fundMany(count: number): Promise<Payer[]> {
  const payers = Array.from({ length: count }, newPayer)
  await shop.chain.mint(
    payers.map(({ address }) => address),
    1_000_000n,
  )
  return payers
}

/** The network between a client and the application, which has no socket. */
const socketless: typeof fetch = async (input, init) => {
  const request = new Request(input, init)
  const { pathname, search } = new URL(request.url)
  const answer = await app.inject({
    method: request.method as 'GET',
    url: `${pathname}${search}`,
    headers: Object.fromEntries(request.headers),
  })
  const { statusCode: status, headers, body } = answer
  return new Response(body, { status, headers: headers as Record<string, string> })
}

function stockClient(payer: Payer): typeof fetch {
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(payer.key)))
  client.setSpendControls({
    maxAmountPerPayment: '$50',
    allowedAssets: [{ network: 'eip155:31337', asset: shop.chain.token, maxAmountPerPayment: '50000000' }],
  })
  return wrapFetchWithPayment(socketless, client)
}

/** The payment is refused with new terms and this reason, nobody is charged and nothing is made. */
async function assertRefused(link: Link, payer: Payer, terms: PaymentRequired, query = ''): Promise<void> {
  const before = await list(link)
  const answer = await ask(link, await paymentHeader(terms, payer.key), query)
  assert.equal(answer.statusCode, 402, answer.body)
  const fresh = answer.json<PaymentRequired>()
  assert.equal(fresh.error, 'quote_outdated')
  assert.notEqual(quoteIn(fresh), terms.accepts[0]?.extra.quote)
  const said = decodePaymentResponseHeader(String(answer.headers['payment-response']))
  assert.deepEqual([said.success, said.errorReason], [false, 'quote_outdated'])
  assert.deepEqual(await list(link), before)
  const claimed = await ctx.db.query('select 1 as one from authorizations where payer = $1', [
    payer.address.toLowerCase(),
  ])
  assert.deepEqual([claimed, await paidBy(payer)], [[], []])
}

test('the stock client pays a link’s address with GET, and the checkout is that of the quote', async () => {
  for (const link of [await make(), await makeMany(), await makeMany({ priceCurrency: 'EUR' })]) {
    const payer = await shop.fund()
    const answer = await stockClient(payer)(link.url)
    const paid = (await answer.json()) as StoreCheckout
    assert.deepEqual([answer.status, paid.status], [200, 'COMPLETED'])
    const [made, ...others] = await list(link)
    assert.deepEqual([made?.id, made?.linkId, made?.orderId, others], [paid.id, link.id, `${link.id}-1`, []])
    assert.equal((await paidBy(payer)).length, 1)
    const events = (await eventsOf(shop, paid.id)).map(({ type, data }) => [
      type,
      'checkout' in data && data.checkout?.orderId,
    ])
    const types = ['checkout.created', 'checkout.processing', 'checkout.completed']
    assert.deepEqual(
      events,
      types.map((type) => [type, `${link.id}-1`]),
    )
  }
})

test('our SDK pays a link’s address, with a nonce that is bound to the checkout of the quote', async () => {
  const payer = await shop.fund()
  const wallet = privateKeyToAccount(payer.key)
  const once = await make()
  const chosen = await makeMany({ priceAmount: undefined, minAmount: '0.10', maxAmount: '5' })
  for (const [url, link] of [
    [once.url, once],
    [`${chosen.url}?amount=1.25`, chosen],
  ] as const) {
    const result = await pay(url, wallet, { max: '2', fetch: socketless })
    assert(result.outcome === 'paid', JSON.stringify(result))
    const [made] = await list(link)
    assert.equal(result.checkout.id, made?.id)
    const [claimed] = await ctx.db.query<{ nonce: Hex }>(
      'select nonce from authorizations where checkout_id = $1',
      [result.checkout.id],
    )
    assert(claimed && isBoundTo(claimed.nonce, result.checkout.id))
  }
  assert.deepEqual(await paidBy(payer), [500_000n, 1_250_000n])
  const again = await pay(once.url, wallet, { max: '2', fetch: socketless })
  assert(again.outcome === 'refused')
  assert.equal(again.code, 'already_paid')
  assert.equal((await readLink(once)).status, 'PAID')
})

test('an invoice is paid at its link, and its number is the order', async () => {
  const payer = await shop.fund()
  const link = await makeLink(api, newInvoice('2026-18'))
  const terms = await termsOf(link)
  assert.match(terms.resource.description, /64\.74 USD for order 2026-18/)
  assert.equal((await ask(link, await paymentHeader(terms, payer.key))).statusCode, 200)
  assert.deepEqual(
    (await list(link)).map(({ orderId }) => orderId),
    ['2026-18'],
  )
})

test('asking for the terms writes no row, whatever the method, and HEAD charges nobody', async () => {
  const payer = await shop.fund()
  const shared = await make()
  checkoutIn(await buyer.open(shared, await buyer.quote(shared)))
  const links = [await make(), await makeMany(), await makeLink(api, newInvoice('2026-19')), shared]
  const headers = await Promise.all(
    links.map(async (link) => await paymentHeader(await termsOf(link), payer.key)),
  )
  await shop.stopWork()
  const before = await dumpRows(ctx.db)
  for (const [i, link] of links.entries())
    for (const method of ['GET', 'HEAD', 'POST'] as const)
      for (const accept of ['*/*', 'application/json', 'image/*', 'text/html'])
        for (const payment of method === 'HEAD' ? [headers[i], undefined] : [undefined]) {
          if (method === 'POST' && accept === 'text/html') continue
          const signed = payment === undefined ? {} : { 'payment-signature': payment }
          const url = new URL(link.url).pathname
          const { statusCode } = await app.inject({ method, url, headers: { accept, ...signed } })
          assert.equal(statusCode, accept === 'text/html' ? 200 : 402)
        }
  assert.equal(await dumpRows(ctx.db), before)
  shop.startWork()
  await untilReady(shop)
})

test('a hundred payments of one once link at the same moment settle exactly one', async () => {
  const link = await make()
  const neighbour = await openNeighbour(shop)
  const payers = await fundMany(100)
  const headers = await Promise.all(
    payers.map(async ({ key }) => await paymentHeader(await termsOf(link), key)),
  )
  const answers = await Promise.all(
    headers.map((header, i) =>
      (i % 2 ? app : neighbour).inject({
        url: new URL(link.url).pathname,
        headers: { 'payment-signature': header },
        remoteAddress: `10.2.0.${i}`,
      }),
    ),
  )
  const statuses = answers.map(({ statusCode }) => statusCode)
  assert.equal(statuses.filter((status) => status === 200).length, 1, String(statuses))
  assert.deepEqual([...new Set(statuses)].sort(), [200, 409])
  assert.deepEqual(
    (await list(link)).map(({ status }) => status),
    ['COMPLETED'],
  )
  const charged = await Promise.all(payers.map(paidBy))
  assert.deepEqual(charged.flat(), [500_000n])
  const [claims] = await ctx.db.query(
    'select count(*)::int as n from authorizations a join checkouts c on c.id = a.checkout_id where c.link_id = $1',
    [link.id],
  )
  assert.deepEqual(claims, { n: 1 })
})

test('twenty payments of one many link, each sent twice, settle once each, with an order of its own', async () => {
  const link = await makeMany()
  const payers = await fundMany(20)
  const headers = await Promise.all(
    payers.map(async ({ key }) => await paymentHeader(await termsOf(link), key)),
  )
  const answers = await Promise.all([...headers, ...headers].map((header) => ask(link, header)))
  assert.deepEqual([...new Set(answers.map(({ statusCode }) => statusCode))], [200])
  assert.equal(new Set((await list(link)).map(({ orderId }) => orderId)).size, 20)
  assert.deepEqual(
    (await Promise.all(payers.map(paidBy))).map((each) => each.length),
    payers.map(() => 1),
  )
})

test('a repeat after the quote’s time, after a change of the link and after its end finds its outcome', async () => {
  const payer = await shop.fund()
  const link = await makeMany()
  const terms = await termsOf(link)
  const header = await paymentHeader(terms, payer.key)
  const first = await ask(link, header)
  assert.equal(first.statusCode, 200, first.body)
  const assertSame = async () => {
    for (const method of ['GET', 'POST'] as const) {
      const again = await ask(link, header, '', method)
      assert.deepEqual([again.statusCode, again.json().id], [200, first.json().id], again.body)
      assert.equal(again.headers['payment-response'], first.headers['payment-response'])
    }
  }
  await assertSame()
  clock.now = new Date(Date.now() + 3_600_000)
  await assertSame()
  clock.now = null
  await patch(link, { priceAmount: '0.75' })
  await assertSame()
  await patch(link, { status: 'CLOSED' })
  await assertSame()
  assertProblem(await ask(link), 410, 'link_closed')
  assert.equal((await paidBy(payer)).length, 1)
})

test('a payment that was claimed for another link or checkout is not taken', async () => {
  const payer = await shop.fund()
  const [link, other] = [await makeMany(), await makeMany()]
  const header = await paymentHeader(await termsOf(link), payer.key)
  assert.equal((await ask(link, header)).statusCode, 200)
  const moved = JSON.parse(Buffer.from(header, 'base64').toString())
  const terms = await termsOf(other)
  moved.accepted = terms.accepts[0]
  const answer = await ask(other, Buffer.from(JSON.stringify(moved)).toString('base64'))
  assertProblem(answer, 409, 'authorization_used')
  assert.deepEqual(await list(other), [])
  assert.equal((await paidBy(payer)).length, 1)
})

test('a quote that is forged, altered, missing or of another link is refused and charges nobody', async () => {
  const payer = await shop.fund()
  const [link, other] = [await makeMany(), await makeMany({ priceAmount: '0.10' })]
  const terms = await termsOf(link)
  const quote = quoteIn(terms)
  const [id = '', body = '', mac = ''] = quote.split('.')
  const said = JSON.parse(Buffer.from(body, 'base64url').toString())
  const alter = (change: object) =>
    [id, Buffer.from(JSON.stringify({ ...said, ...change })).toString('base64url'), mac].join('.')
  const [otherId] = quoteIn(await termsOf(link)).split('.')
  for (const forged of [
    undefined,
    ...['x', id, `${id}.${body}`, `${id}..`, `${quote}x`, [otherId, body, mac].join('.')],
    ...[{ priceAmount: '0.01' }, { until: '2100-01-01T00:00:00Z' }].map(alter),
    quoteIn(await termsOf(other)),
  ])
    await assertRefused(link, payer, withQuote(terms, forged))
  // The cheaper link's own terms, at the dearer one's address.
  await assertRefused(link, payer, await termsOf(other))
})

test('a quote is good for five minutes, and only for the link as it was', async () => {
  const payer = await shop.fund()
  const link = await makeMany()
  const old = await termsOf(link)
  clock.now = new Date(Date.now() + 301_000)
  await assertRefused(link, payer, old)
  clock.now = null
  for (const change of [{ title: 'Other' }, { priceAmount: '0.75' }]) {
    const terms = await termsOf(link)
    await patch(link, change)
    await assertRefused(link, payer, terms)
  }
  const shared = await make()
  const before = await termsOf(shared)
  await patch(shared, { priceAmount: '0.75' })
  await assertRefused(shared, payer, before)
  assert.equal((await ask(shared, await paymentHeader(await termsOf(shared), payer.key))).statusCode, 200)
  assert.deepEqual(await paidBy(payer), [750_000n])
})

test('a payment that doesn’t fit its quote, or without the money, makes nothing', async () => {
  const [link, payer, poor] = [await makeMany(), await shop.fund(), await shop.fund(1n)]
  const terms = await termsOf(link)
  for (const [header, reason] of [
    [await paymentHeader(terms, payer.key, { value: 1n }), /value_mismatch$/],
    [await paymentHeader(terms, payer.key, { to: payer.address }), /recipient_mismatch$/],
    [await paymentHeader(terms, payer.key, { signature: `0x${'22'.repeat(65)}` }), /signature$/],
    [await paymentHeader(terms, poor.key), /insufficient_balance$/],
  ] as const) {
    const answer = await ask(link, header)
    assert.equal(answer.statusCode, 402, answer.body)
    assert.match(answer.json<PaymentRequired>().error ?? '', reason)
    assert.equal(quoteIn(answer.json()), quoteIn(terms))
  }
  assertProblem(await ask(link, '?'), 400, 'malformed_payment')
  assert.deepEqual([await list(link), await paidBy(payer)], [[], []])
  assert.equal((await ask(link, await paymentHeader(terms, payer.key))).statusCode, 200)
})

test('a once link with a live checkout has that one’s terms, and the checkout is the one that is paid', async () => {
  const payer = await shop.fund()
  const link = await make()
  const early = await termsOf(link)
  const id = await buyer.goOn(link)
  const terms = await termsOf(link)
  assert.equal(quoteIn(terms), id)
  assert.deepEqual(terms.accepts[0]?.amount, early.accepts[0]?.amount)
  for (const forged of [undefined, 'x', `${id}.x.x`, `${id}0`])
    await assertRefused(link, payer, withQuote(terms, forged))
  // Who was quoted before the checkout was made pays it too.
  const answer = await ask(link, await paymentHeader(early, payer.key))
  assert.deepEqual([answer.statusCode, answer.json().id], [200, id])
  assert.equal((await list(link)).length, 1)
})

test('a once link is in progress while its checkout is paid, and already paid afterwards; neither has terms', async () => {
  const payer = await shop.fund()
  const link = await make()
  const header = await paymentHeader(await termsOf(link), payer.key)
  const id = await buyer.goOn(link)
  for (const [status, paidAt, code] of [
    ['PROCESSING', 'null', 'payment_in_progress'],
    ['COMPLETED', 'clock()', 'already_paid'],
  ] as const) {
    await setStatus(shop, id, status)
    await ctx.db.query(`update links set paid_at = ${paidAt} where id = $1`, [link.id])
    for (const payment of [undefined, header]) {
      const answer = await ask(link, payment)
      assertProblem(answer, 409, code)
      assert.equal(answer.headers['payment-required'], undefined)
    }
  }
  assert.deepEqual(await paidBy(payer), [])
})

test('an expired checkout of a once link is replaced by the payment', async () => {
  const payer = await shop.fund()
  const link = await make()
  const first = await buyer.goOn(link)
  const terms = await termsOf(link)
  await letExpire(shop, first)
  await untilStatus(shop, first, 'EXPIRED')
  assertProblem(await ask(link, await paymentHeader(terms, payer.key)), 410, 'checkout_expired')
  const answer = await ask(link, await paymentHeader(await termsOf(link), payer.key))
  assert.equal(answer.statusCode, 200, answer.body)
  assert.notEqual(answer.json().id, first)
  assert.deepEqual(await paidBy(payer), [500_000n])
})

test('the buyer chooses the amount in the address, and the quote keeps it', async () => {
  const payer = await shop.fund()
  const link = await makeMany({ priceAmount: undefined, minAmount: '0.10', maxAmount: '5' })
  for (const query of [
    '',
    '?amount=',
    '?amount=0.09',
    '?amount=5.01',
    '?amount=1,5',
    '?amount=1e0',
    '?amount=1&amount=2',
  ]) {
    const { errors } = assertProblem(await ask(link, undefined, query), 422, 'invalid_request')
    assert.deepEqual(
      errors?.map(({ pointer }) => pointer),
      ['amount'],
      query,
    )
  }
  const terms = await termsOf(link, '?amount=1.25')
  assert.deepEqual([terms.accepts[0]?.amount, terms.resource.url], ['1250000', `${link.url}?amount=1.25`])
  assert.equal((await ask(link, await paymentHeader(terms, payer.key), '?amount=0.10')).statusCode, 200)
  assert.deepEqual([(await list(link))[0]?.priceAmount, await paidBy(payer)], ['1.25', [1_250_000n]])
  const fixed = await makeMany()
  assert.equal((await termsOf(fixed, '?amount=0.01')).accepts[0]?.amount, '500000')
})

test('an unknown, closed or ended link has no terms', async () => {
  const closed = await makeMany()
  const terms = await termsOf(closed)
  await patch(closed, { status: 'CLOSED' })
  const ended = await makeMany()
  await ctx.db.query("update links set until = clock() - interval '1 second' where id = $1", [ended.id])
  const payer = await shop.fund()
  for (const header of [undefined, await paymentHeader(terms, payer.key)]) {
    assertProblem(await ask(closed, header), 410, 'link_closed')
    assertProblem(await ask(ended, header), 410, 'link_ended')
    assertProblem(await ask({ url: `${closed.url.slice(0, -1)}!` }, header), 404, 'not_found')
  }
  assert.deepEqual(await paidBy(payer), [])
})

test('a checkout of a many link that is there is paid by its id, as the terms name it after a refusal', async () => {
  const payer = await shop.fund()
  const link = await makeMany()
  const id = await buyer.goOn(link)
  const named = withQuote(await termsOf(link), id)
  const refused = await ask(link, await paymentHeader(named, payer.key, { value: 1n }))
  assert.deepEqual([refused.statusCode, quoteIn(refused.json())], [402, id])
  const answer = await ask(link, await paymentHeader(refused.json(), payer.key))
  assert.deepEqual([answer.statusCode, answer.json().id], [200, id])
})
