/** The client against a real server, over a socket. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createClient, type FarthingClient, FarthingError } from '@farthing/sdk'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { assignWaitingSequences } from '../../server/src/events/assign-sequence.ts'
import { atEnd } from '../../server/test/support/at-end.ts'
import { creditByHand, letTimePass, payFinally } from '../../server/test/support/by-hand.ts'
import { delayMs } from '../src/wait.ts'
import { openStore, watchedFetch } from './support/shops.ts'

const shop = await openStore({ NETWORKS: 'BASE_MAINNET,BASE_SEPOLIA,SIMULATED' })
const { client } = shop
const order = { orderId: 'order-1', priceAmount: '12.50', priceCurrency: 'USD' }
const receiver = { url: 'http://localhost:9/hook' }

async function failureOf(promise: Promise<unknown>): Promise<FarthingError> {
  const error = await promise.then(
    () => assert.fail('it succeeded'),
    (reason) => reason,
  )
  assert(error instanceof FarthingError, String(error))
  return error
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('every operation that takes an API key has a method, which returns what the server sent', async () => {
  const { requests, fetch: watched } = watchedFetch()
  const mine = shop.open({ fetch: watched, retriesMax: 0 })
  const created = await mine.checkouts.create(order)
  assert.deepEqual(await mine.checkouts.get(created.id), { ...created, payment: null })
  assert.equal((await mine.checkouts.list({ limit: 1 }).page()).data[0]?.id, created.id)
  assert.equal((await mine.checkouts.cancel(created.id)).status, 'CANCELED')

  const tried = await mine.checkouts.create({ ...order, orderId: 'tried' })
  const simulated = await mine.test.simulate(tried.id, 'checkout.expired')
  assert.deepEqual(
    [simulated.case, simulated.checkout.id, simulated.answer],
    ['checkout.expired', tried.id, null],
  )

  const until = new Date(Date.now() + 86_400_000).toISOString()
  const link = await mine.links.create({ title: 'Tickets', priceAmount: '5', priceCurrency: 'USD', until })
  assert.deepEqual(await mine.links.get(link.id), link)
  assert.deepEqual((await mine.links.list({ status: 'ACTIVE' }).page()).data, [link])
  assert.equal((await mine.links.update(link.id, { priceAmount: '6' })).priceAmount, '6')
  assert.equal((await mine.links.close(link.id)).status, 'CLOSED')

  const [late, unwanted] = [await creditByHand(shop, created.id), await creditByHand(shop, created.id)]
  assert.equal((await mine.payments.list({ disposition: 'unmatched' }).page()).data.length, 2)
  assert.equal((await mine.payments.accept(late, { checkoutId: created.id })).checkoutId, created.id)
  const dismissed = await mine.payments.dismiss(unwanted, { note: 'sent back' })
  assert.equal(dismissed.note?.text, 'sent back')
  assert.equal((await mine.payments.note(unwanted, null)).note, undefined)
  assert((await mine.payments.get(unwanted)).dismissedAt)

  const written = await mine.movements.list({ bookedFrom: '2026-01-01T00:00:00Z' }).page()
  const file = await mine.movements.file({ format: 'ndjson', details: true })
  assert.equal(await new Response(file.body).text(), '')
  assert.deepEqual([written.data, file.lines, file.isClosed], [[], 0, false])
  const misnamed = await failureOf(mine.movements.file({ format: 'csv', month: 'October' }))
  assert.deepEqual([misnamed.status, misnamed.code], [422, 'invalid_request'])

  const paid = await payFinally(shop, (await mine.checkouts.create(order)).id)
  const refund = await mine.refunds.create(paid, { amount: '2500000', reason: 'Broken cup' })
  assert.deepEqual(await mine.refunds.get(refund.id), refund)
  assert.deepEqual((await mine.refunds.list({ paymentId: paid }).page()).data, [refund])
  assert.equal((await mine.payments.get(paid)).refundable, '10000000')
  // There is no chain here: cli/test/refund.test.ts signs on one.
  assert.equal((await failureOf(mine.refunds.prepare(refund.id))).code, 'unavailable')
  assert.equal((await failureOf(mine.refunds.present(refund.id, { signature: '0x00' }))).status, 422)
  assert.equal((await failureOf(mine.refunds.requestAddress(refund.id))).code, 'address_request_closed')
  assert.equal((await mine.refunds.cancel(refund.id)).status, 'CANCELED')
  const sent = await mine.refunds.create(paid, { way: 'self-sent' })
  assert.equal((await mine.refunds.name(sent.id, { reference: 'Withdrawal 4711' })).status, 'DECLARED')

  await assignWaitingSequences(shop.ctx)
  assert.equal((await mine.events.list({ type: 'checkout.created' })).data[0]?.checkoutId, created.id)

  const walletAddress = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'
  const wallet = { walletAddress, custodialType: 'NON_CUSTODIAL', family: 'EVM' } as const
  const registered = await mine.wallets.register(wallet)
  assert.deepEqual(registered, (await mine.wallets.list().page()).data[0])
  const solana = '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi'
  assert.equal(
    (await mine.wallets.register({ ...wallet, family: 'SOLANA', walletAddress: solana })).family,
    'SOLANA',
  )
  assert.equal((await mine.wallets.update(registered.id, { sharedElsewhere: true })).sharedElsewhere, true)
  const holder = privateKeyToAccount(generatePrivateKey())
  const own = await mine.wallets.register({ ...wallet, walletAddress: holder.address })
  const { message } = await mine.wallets.challenge(own.id)
  const signature = await holder.signMessage({ message })
  assert((await mine.wallets.prove(own.id, { signature })).provenAt)
  assert.equal((await mine.wallets.retire(registered.id)).current, false)

  const { key, ...made } = await mine.keys.create({ label: 'till', preset: 'create' })
  assert.match(key, /^sk_/)
  assert.deepEqual((await mine.keys.list({ limit: 1 }).page()).data, [made])
  assert.deepEqual((await mine.keys.rotate(made.id, { overlapSeconds: 60 })).scopes, made.scopes)
  assert((await mine.keys.revoke(made.id)).revokedAt)

  assert.equal((await mine.store.get()).id, shop.store.id)
  assert.equal((await mine.store.update({ name: 'Another' })).name, 'Another')

  const endpoint = await mine.webhookEndpoints.create(receiver)
  assert.match(endpoint.secret, /^whsec_/)
  const { secret, ...shown } = endpoint
  assert.deepEqual(await mine.webhookEndpoints.get(endpoint.id), shown)
  assert.deepEqual((await mine.webhookEndpoints.list().page()).data, [shown])
  assert.notEqual((await mine.webhookEndpoints.rollSecret(endpoint.id)).secret, secret)
  const { eventId } = await mine.webhookEndpoints.test(endpoint.id)
  await assignWaitingSequences(shop.ctx)
  const [delivery] = (await mine.webhookEndpoints.deliveries(endpoint.id, { eventId }).page()).data
  assert(delivery)
  assert.deepEqual(await mine.deliveries.get(delivery.id), delivery)
  assert.equal((await mine.deliveries.redeliver(delivery.id)).id, delivery.id)
  assert.equal(
    (await mine.webhookEndpoints.redeliver(endpoint.id, { since: '2026-01-01T00:00:00Z' })).hasMore,
    false,
  )
  assert.equal((await mine.webhookEndpoints.update(endpoint.id, { ordered: true })).ordered, true)
  assert.equal((await mine.webhookEndpoints.delete(endpoint.id)).status, 'disabled')

  assert((await mine.networks.list()).length > 0)
  assert((await mine.currencies.list()).some(({ code }) => code === 'USD'))

  const document = (await (await fetch(`${shop.baseUrl}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { operationId: string }>>
  }
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => ({ path, method, operationId })),
  )
  const called = new Set(
    requests.map(({ method, path }) => {
      const matching = operations.filter(
        (each) =>
          each.method === method.toLowerCase() &&
          new RegExp(`^${each.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path),
      )
      return (matching.find((each) => !each.path.includes('{')) ?? matching[0])?.operationId
    }),
  )
  const forPayers = /^(payCheckout|openCheckoutPage|payLink$|openLinkPage$)/
  // The client reads the key's own store at /store, so it never calls getStore with an id.
  const missing = operations.filter(
    ({ operationId }) =>
      !called.has(operationId) && !forPayers.test(operationId) && operationId !== 'getStore',
  )
  assert.deepEqual(missing, [])
})

test('a create whose answer is lost is retried with the same key and creates one checkout', async () => {
  const { requests, fetch: losing } = watchedFetch((_request, count) => count <= 2)
  const orderId = 'lost-answers'
  const created = await shop.open({ fetch: losing }).checkouts.create({ ...order, orderId })
  const keys = requests.map(({ headers }) => headers.get('idempotency-key'))
  assert.equal(keys.length, 3)
  assert.equal(new Set(keys).size, 1)
  const made = await client.checkouts.list({ orderId }).page()
  assert.deepEqual(
    made.data.map(({ id }) => id),
    [created.id],
  )
})

test('each create generates its own idempotency key, unless the caller passes one', async () => {
  const [first, second] = [await client.checkouts.create(order), await client.checkouts.create(order)]
  assert.notEqual(first.id, second.id)
  const idempotencyKey = 'order-1-try-1'
  const repeated = [
    await client.checkouts.create(order, { idempotencyKey }),
    await client.checkouts.create(order, { idempotencyKey }),
  ]
  assert.equal(repeated[0]?.id, repeated[1]?.id)
  const other = await failureOf(client.checkouts.create({ ...order, priceAmount: '1' }, { idempotencyKey }))
  assert.equal(other.code, 'idempotency_key_reused')
})

test('a request that is not idempotent is not retried after a lost answer', async () => {
  const { id } = await client.webhookEndpoints.create({ url: 'http://localhost:9/once' })
  const calls: [string, (client: FarthingClient) => Promise<unknown>][] = [
    ['create', ({ webhookEndpoints }) => webhookEndpoints.create({ url: 'http://localhost:9/new' })],
    ['roll', ({ webhookEndpoints }) => webhookEndpoints.rollSecret(id)],
    ['test', ({ webhookEndpoints }) => webhookEndpoints.test(id)],
    ['delete', ({ webhookEndpoints }) => webhookEndpoints.delete(id)],
  ]
  for (const [name, call] of calls) {
    const { requests, fetch: losing } = watchedFetch(() => true)
    const error = await failureOf(call(shop.open({ fetch: losing })))
    assert.deepEqual([name, error.code, error.status, requests.length], [name, 'no_answer', null, 1])
  }
})

test('reads and idempotent changes are retried, at most retriesMax times', async () => {
  const { id } = await client.checkouts.create(order)
  const { requests, fetch: losing } = watchedFetch((_request, count) => count === 1)
  assert.equal((await shop.open({ fetch: losing }).checkouts.cancel(id)).status, 'CANCELED')
  assert.equal(requests.length, 2)
  const never = watchedFetch(() => true)
  const error = await failureOf(shop.open({ fetch: never.fetch, retriesMax: 2 }).checkouts.get(id))
  assert.equal(error.code, 'no_answer')
  assert.equal(never.requests.length, 3)
})

test('a refusal carries code, status, detail, request id and the invalid field, and is not retried', async () => {
  const { requests, fetch: watched } = watchedFetch()
  const asking = shop.open({ fetch: watched })
  const invalid = await failureOf(asking.checkouts.create({ ...order, priceAmount: '-1' }))
  assert.deepEqual([invalid.status, invalid.code], [422, 'invalid_request'])
  assert.match(invalid.requestId ?? '', /^req_/)
  assert.deepEqual(
    invalid.problem?.errors?.map(({ pointer }) => pointer),
    ['/priceAmount'],
  )
  assert(invalid.message.includes(invalid.detail) && invalid.message.includes('invalid_request'))
  const none = await failureOf(asking.checkouts.get('ch_none/../../events'))
  assert.deepEqual([none.status, none.code], [404, 'not_found'])
  const { id } = await client.checkouts.create(order)
  await letTimePass(shop, id)
  assert.equal((await failureOf(asking.checkouts.cancel(id))).code, 'not_cancelable')
  assert.equal((await failureOf(shop.open({ apiKey: 'sk_test_wrong' }).store.get())).code, 'invalid_api_key')
  assert.equal(requests.length, 3)
})

test('an answer that did not come from Farthing is reported as unreadable', async () => {
  const error = await failureOf(shop.open({ baseUrl: `${shop.baseUrl}/docs` }).networks.list())
  assert.equal(error.status, 404)
  const baseUrl = await serve((_request, response) => response.end('<html>hello</html>'))
  const strange = await failureOf(createClient({ apiKey: 'sk', baseUrl }).networks.list())
  assert.deepEqual([strange.code, strange.status], ['unreadable_answer', 200])
})

test('a server that does not answer in time causes a timeout error, and an abort rejects with its reason', async () => {
  const baseUrl = await serve(() => {})
  const waiting = createClient({ apiKey: 'sk', baseUrl, timeoutMs: 50, retriesMax: 1 })
  assert.equal((await failureOf(waiting.store.get())).code, 'timeout')
  const abort = new AbortController()
  const patient = createClient({ apiKey: 'sk', baseUrl })
  const asked = patient.store.get({ signal: abort.signal })
  abort.abort(new Error('enough'))
  await assert.rejects(asked, /enough/)
})

test('a rate-limited client waits as long as the server says and then succeeds', async () => {
  const limited = await openStore({ KEY_REQUESTS_PER_SECOND: '1' })
  const { requests, fetch: watched } = watchedFetch()
  const eager = limited.open({ fetch: watched })
  for (let i = 0; i < 3; i++) await eager.webhookEndpoints.create({ url: `http://localhost:9/${i}` })
  assert.equal((await limited.client.webhookEndpoints.list().page()).data.length, 3)
  assert(requests.length > 3, 'no request was rate-limited')
})

test('retry delays grow, have jitter, are bounded, and follow Retry-After', () => {
  for (const random of [0, 0.5, 0.999]) {
    assert(delayMs(1, null, random) >= 125 && delayMs(1, null, random) <= 250)
    assert(delayMs(3, null, random) >= 500 && delayMs(3, null, random) <= 1_000)
    assert(delayMs(50, null, random) <= 8_000)
    assert(delayMs(1, 7, random) >= 7_000 && delayMs(1, 7, random) < 7_250)
  }
})

test('iterating over a list yields every item of every page exactly once', async () => {
  const seller = await openStore()
  const ids: string[] = []
  for (let i = 0; i < 7; i++)
    ids.push((await seller.client.checkouts.create({ ...order, orderId: `${i}` })).id)
  const read: string[] = []
  for await (const { id } of seller.client.checkouts.list({ limit: 3 })) read.push(id)
  assert.deepEqual(read, ids.toReversed())
  const first = await seller.client.checkouts.list({ limit: 3 }).page()
  assert(first.nextCursor)
  const second = await seller.client.checkouts.list({ limit: 3, cursor: first.nextCursor }).page()
  assert.deepEqual(
    [...first.data, ...second.data].map(({ id }) => id),
    read.slice(0, 6),
  )
})

test('a baseUrl that is missing or no web address is refused at once, in a sentence', () => {
  for (const baseUrl of ['', 'farthing.example', 'ftp://farthing.example', 'https://'])
    assert.throws(() => createClient({ apiKey: 'sk', baseUrl }), {
      name: 'TypeError',
      message: `baseUrl must be where Farthing runs, such as "https://farthing.example", not ${JSON.stringify(baseUrl)}.`,
    })
})

test('an API key is sent to no other machine in plain http', () => {
  const open = (baseUrl: string) => () => createClient({ apiKey: 'sk', baseUrl })
  for (const baseUrl of [
    'http://farthing.example',
    'http://10.0.0.7:8402',
    'http://127.0.0.1.evil.example',
    'http://localhost.evil.example',
    'http://127.0.0.1@evil.example',
    'http://[::2]:8402',
    'http://0x7f000002.example',
  ])
    assert.throws(open(baseUrl), /not encrypted/, baseUrl)
  for (const baseUrl of [
    'http://127.0.0.1:8402',
    'http://127.9.9.9',
    'http://localhost:8402',
    'http://shop.localhost',
    'http://[::1]:8402',
    'http://2130706433',
    'https://farthing.example',
  ])
    assert.doesNotThrow(open(baseUrl), baseUrl)
})
