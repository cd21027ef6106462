import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { replaceRates } from '../../../src/rates/rows.ts'
import { sources } from '../../../src/rates/sources.ts'
import { bookAt, lineOf, onSolana } from '../../movements/support/lines.ts'
import { openTestApp } from '../../support/app.ts'
import { completeByHand, setStatus } from '../../support/by-hand.ts'
import { startDeciding } from '../../support/decide.ts'
import {
  type Answer,
  openStore,
  order,
  registerWallet,
  type StoreClient,
  send,
  solanaWallets,
  wallets,
} from '../../support/store.ts'
import type { Call } from '../support/call.ts'
import { assertDocumented, documented, fillPath, type Operation, operations } from '../support/document.ts'
import { keyCalls } from '../support/key-calls.ts'
import { linkCalls } from '../support/link-calls.ts'
import { paymentCalls } from '../support/payment-calls.ts'
import { refundCalls } from '../support/refund-calls.ts'
import { openSigning } from '../support/signing.ts'

const signing = await openSigning()
const networks = { NETWORKS: 'BASE_MAINNET,BASE_SEPOLIA,SIMULATED' }
const farthing = await openTestApp({ ...documented, ...networks, ...signing.settings })
await signing.follow(farthing)
startDeciding(farthing)
const shop = await openStore(farthing, { evmWallet: signing.wallet.address })
const missing = {
  checkoutId: `ch_00${'0'.repeat(26)}`,
  walletId: `wal_00${'0'.repeat(26)}`,
  endpointId: `we_00${'0'.repeat(26)}`,
  deliveryId: `dlv_00${'0'.repeat(26)}`,
}

const evm = { walletAddress: wallets[1], custodialType: 'NON_CUSTODIAL' }
const solana = { walletAddress: solanaWallets[1], custodialType: 'CUSTODIAL' }
const payCalls = async (): Promise<Call[]> => {
  const [open, paid, processing, canceled] = await Promise.all(Array.from({ length: 4 }, () => shop.create()))
  assert(open && paid && processing && canceled)
  await completeByHand(farthing, paid.id)
  await setStatus(farthing, processing.id, 'PROCESSING')
  await setStatus(farthing, canceled.id, 'CANCELED')
  const at = ({ id }: { id: string }) => ({ by: null, path: { checkoutId: id } })
  const payment = Buffer.from('{"x402Version":2}').toString('base64')
  return [
    { ...at(paid), status: 200 },
    { ...at(open), status: 402 },
    { ...at(open), status: 402, body: 'x', headers: { 'content-type': 'text/plain' } },
    { ...at(open), status: 400, headers: { 'payment-signature': '!' } },
    { by: null, path: missing, status: 404 },
    { ...at(processing), status: 409 },
    { ...at(paid), status: 409, headers: { 'payment-signature': payment } },
    { ...at(canceled), status: 410 },
    { ...at(open), status: 413, body: 'x'.repeat(65_537) },
  ]
}

/** Calls for every operation: at least one that succeeds, and refusals of the kinds that its documentation lists. */
const calls: Readonly<Record<string, () => Promise<Call[]>>> = {
  async createCheckout() {
    const walletless = await openStore(farthing, { evmWallet: null })
    const keyed = { 'idempotency-key': 'documented' }
    return [
      { status: 201, body: order, headers: keyed },
      { status: 201, body: order, headers: keyed },
      {
        status: 201,
        body: {
          ...order,
          successRedirectUrl: 'https://shop.example/',
          cancelUrl: 'https://shop.example/',
          expiresInSeconds: 300,
        },
      },
      { status: 201, body: { ...order, priceCurrency: 'EUR' } },
      { status: 422, body: { ...order, orderId: 'other' }, headers: keyed },
      { status: 422, body: { ...order, priceCurrency: 'ISK' } },
      { status: 422, body: {} },
      { status: 400, body: '{' },
      { status: 409, by: walletless, body: order },
      { status: 413, body: `"${'x'.repeat(65_536)}"` },
      { status: 415, body: '{}', headers: { 'content-type': 'text/plain' } },
    ]
  },
  async listCheckouts() {
    const { id } = await shop.create()
    await completeByHand(farthing, id)
    return [
      { status: 200 },
      { status: 200, query: '?status=COMPLETED&limit=1' },
      { status: 200, by: await openStore(farthing) },
      { status: 422, query: '?limit=0' },
    ]
  },
  async getCheckout() {
    const [open, paid] = [await shop.create(), await shop.create()]
    await completeByHand(farthing, paid.id)
    return [
      { status: 200, path: { checkoutId: open.id } },
      { status: 200, path: { checkoutId: paid.id } },
      { status: 404, path: missing },
    ]
  },
  async cancelCheckout() {
    const [open, paid] = [await shop.create(), await shop.create()]
    await setStatus(farthing, paid.id, 'COMPLETED')
    return [
      { status: 200, path: { checkoutId: open.id } },
      { status: 200, path: { checkoutId: open.id }, body: '' },
      { status: 400, path: { checkoutId: open.id }, body: '{' },
      { status: 404, path: missing },
      { status: 409, path: { checkoutId: paid.id } },
      { status: 415, path: { checkoutId: open.id }, body: 'x', headers: { 'content-type': 'text/plain' } },
    ]
  },
  async simulate() {
    const tests = await openStore(farthing, { mode: 'test', evmWallet: null })
    const [open, canceled, paid] = [await tests.create(), await tests.create(), await tests.create()]
    await setStatus(farthing, canceled.id, 'CANCELED')
    await setStatus(farthing, paid.id, 'COMPLETED')
    const of = ({ id }: { id: string }, name = 'checkout.expired') => ({
      by: tests,
      body: { checkoutId: id, case: name },
    })
    const [live] = [await shop.create()]
    return [
      { status: 200, ...of(open, 'payment.refused') },
      { status: 200, ...of(open) },
      { status: 410, ...of(open) },
      { status: 410, ...of(canceled) },
      { status: 409, ...of(paid) },
      { status: 409, body: { checkoutId: live.id, case: 'payment.paid' } },
      { status: 404, by: tests, body: { checkoutId: missing.checkoutId, case: 'payment.paid' } },
      { status: 422, ...of(open, 'payment.unheard') },
      // No work follows the simulated network here.
      { status: 503, ...of(await tests.create(), 'payment.late') },
    ]
  },
  ...linkCalls(farthing, shop),
  ...paymentCalls(farthing, shop),
  ...refundCalls(farthing, shop, signing),
  async listEvents() {
    await shop.create()
    await shop.events()
    return [
      { status: 200 },
      { status: 200, query: '?limit=100&type=checkout.created' },
      { status: 200, query: '?type=wallet.registered' },
      { status: 200, query: '?type=key.created' },
      { status: 409, query: '?after=999-1' },
      { status: 422, query: '?after=x' },
    ]
  },
  async listMovements() {
    await bookAt(farthing, '2026-10-15T12:00:00Z', [lineOf(shop.id), lineOf(shop.id, onSolana)])
    return [
      { status: 200 },
      { status: 200, query: '?month=2026-10&details=true&limit=1' },
      { status: 422, query: '?month=October' },
      { status: 422, query: '?cursor=x' },
    ]
  },
  ...keyCalls(shop),
  getOwnStore: async () => [{ status: 200 }],
  getStore: async () => [{ status: 200 }, { status: 404, path: { storeId: `st_00${'0'.repeat(26)}` } }],
  updateStore: async () => [
    { status: 200, body: { name: 'Shop', logoUrl: 'https://shop.example/', accentColor: '#00ff00' } },
    { status: 200, body: { logoUrl: null, supportEmail: 'help@shop.example', supportUrl: null } },
    { status: 400, body: '[' },
    { status: 404, body: { name: 'x' }, path: { storeId: 'x' } },
    { status: 415, body: '{}', headers: { 'content-type': 'application/merge-patch+json' } },
    { status: 422, body: {} },
  ],
  registerSolanaWallet: async () => registrations(solana),
  registerEvmWallet: async () => registrations(evm),
  listWallets: async () => [
    { status: 200 },
    { status: 200, query: '?limit=1' },
    { status: 404, path: { storeId: 'x' } },
    { status: 422, query: '?cursor=x' },
  ],
  async updateWallet() {
    const { id } = await registerWallet(shop, wallets[2])
    return [
      { status: 200, path: { walletId: id }, body: { sharedElsewhere: true } },
      { status: 422, path: { walletId: id }, body: {} },
      { status: 404, path: missing, body: { sharedElsewhere: true } },
    ]
  },
  async challengeWallet() {
    const { id } = await registerWallet(shop, wallets[2])
    return [
      { status: 201, path: { walletId: id } },
      { status: 404, path: missing },
    ]
  },
  async proveWallet() {
    const holder = privateKeyToAccount(generatePrivateKey())
    const { id } = await registerWallet(shop, holder.address)
    const path = `/api/v1/stores/${shop.id}/wallets/${id}/challenge`
    const { message } = (await shop.call('POST', path)).json()
    const signature = await holder.signMessage({ message })
    return [
      { status: 422, path: { walletId: id }, body: { signature: '0x00' } },
      { status: 200, path: { walletId: id }, body: { signature } },
      { status: 422, path: { walletId: id }, body: { signature } },
      { status: 404, path: missing, body: { signature } },
    ]
  },
  async retireWallet() {
    const { id } = await registerWallet(shop, wallets[2])
    return [
      { status: 200, path: { walletId: id } },
      { status: 400, path: { walletId: id }, body: '{' },
      { status: 404, path: missing },
    ]
  },
  createWebhookEndpoint: async () => [
    { status: 201, body: { url: 'https://hooks.example/made' } },
    {
      status: 201,
      body: { url: 'https://hooks.example/more', types: ['checkout.completed'], ordered: true },
    },
    { status: 409, body: { url: 'https://hooks.example/made' } },
    { status: 422, body: { url: 'http://hooks.example/' } },
    { status: 422, body: { url: 'https://10.0.0.1/' } },
    { status: 422, body: { url: 'https://hooks.example:22/' } },
    { status: 400, body: '{' },
  ],
  listWebhookEndpoints: async () => [
    { status: 200 },
    { status: 200, query: '?limit=1' },
    { status: 422, query: '?cursor=x' },
  ],
  async getWebhookEndpoint() {
    const endpointId = await endpoint('get')
    return [
      { status: 200, path: { endpointId } },
      { status: 404, path: missing },
      { status: 404, path: { endpointId: 'x' } },
    ]
  },
  async updateWebhookEndpoint() {
    const endpointId = await endpoint('update')
    return [
      { status: 200, path: { endpointId }, body: { status: 'disabled', types: ['key.created'] } },
      { status: 200, path: { endpointId }, body: { status: 'enabled', url: 'https://hooks.example/new' } },
      { status: 409, path: { endpointId }, body: { url: 'https://hooks.example/made' } },
      { status: 422, path: { endpointId }, body: {} },
      { status: 422, path: { endpointId }, body: { url: 'https://localhost/' } },
      { status: 404, path: missing, body: { ordered: true } },
    ]
  },
  async deleteWebhookEndpoint() {
    const endpointId = await endpoint('delete')
    return [
      { status: 200, path: { endpointId } },
      { status: 404, path: { endpointId } },
    ]
  },
  async rollWebhookSecret() {
    const endpointId = await endpoint('roll')
    return [
      { status: 200, path: { endpointId }, body: {} },
      { status: 200, path: { endpointId }, body: { overlapSeconds: 0 } },
      { status: 422, path: { endpointId }, body: { overlapSeconds: -1 } },
      { status: 404, path: missing, body: {} },
    ]
  },
  async testWebhookEndpoint() {
    const [endpointId, disabled] = [await endpoint('test'), await endpoint('disabled')]
    await shop.call('PATCH', `/api/v1/webhook-endpoints/${disabled}`, { status: 'disabled' })
    return [
      { status: 202, path: { endpointId } },
      { status: 409, path: { endpointId: disabled } },
      { status: 404, path: missing },
    ]
  },
  async listDeliveries() {
    const endpointId = await endpoint('log')
    await shop.create()
    await shop.events()
    return [
      { status: 200, path: { endpointId } },
      { status: 200, path: { endpointId }, query: '?state=pending&limit=1' },
      { status: 404, path: missing },
      { status: 422, path: { endpointId }, query: '?eventId=x' },
      { status: 422, path: { endpointId }, query: '?cursor=x' },
    ]
  },
  async redeliverSince() {
    const endpointId = await endpoint('since')
    return [
      { status: 202, path: { endpointId }, body: { after: '1-0' } },
      { status: 202, path: { endpointId }, body: { since: '2026-01-01T00:00:00Z', include: 'all' } },
      { status: 422, path: { endpointId }, body: {} },
      { status: 422, path: { endpointId }, body: { after: 'x' } },
      { status: 409, path: { endpointId }, body: { after: '99-1' } },
      { status: 404, path: missing, body: { after: '1-0' } },
    ]
  },
  getDelivery: async () => [
    { status: 200, path: { deliveryId: await delivery() } },
    { status: 404, path: missing },
  ],
  redeliver: async () => [
    { status: 202, path: { deliveryId: await delivery() } },
    { status: 404, path: missing },
  ],
  listNetworks: async () => [{ status: 200, by: null }],
  listCurrencies: async () => [{ status: 200, by: null }],
  payCheckout: payCalls,
  payCheckoutPage: payCalls,
  openCheckoutPage: async () => (await payCalls()).filter(({ body }) => body === undefined),
}

async function endpoint(name: string): Promise<string> {
  const answer = await shop.call('POST', '/api/v1/webhook-endpoints', {
    url: `https://hooks.example/${name}`,
  })
  assert.equal(answer.statusCode, 201, answer.body)
  return answer.json().id
}

async function delivery(): Promise<string> {
  await shop.create()
  await shop.events()
  const [first] = (await shop.call('GET', '/api/v1/webhook-endpoints')).json().data
  const [found] = (await shop.call('GET', `/api/v1/webhook-endpoints/${first.id}/deliveries`)).json().data
  return found.id
}

function registrations(wallet: { custodialType: string }): Call[] {
  const custodialType = wallet.custodialType === 'CUSTODIAL' ? 'NON_CUSTODIAL' : 'CUSTODIAL'
  return [
    { status: 201, body: wallet },
    { status: 201, body: wallet },
    { status: 404, body: wallet, path: { storeId: 'x' } },
    { status: 409, body: { ...wallet, custodialType } },
    { status: 422, body: { ...wallet, walletAddress: 'x' } },
    { status: 400, body: '{' },
  ]
}

async function perform(
  operation: Operation,
  { by = shop, path, query = '', body, headers }: Call,
): Promise<Answer> {
  const url = fillPath(operation.path, { storeId: by?.id ?? '', ...path }) + query
  const call = by ? by.call : send.bind(null, farthing.app)
  return await call(operation.method, url, body, headers)
}

for (const source of sources) {
  const perBase = new Map(
    Object.entries(source.base === 'USD' ? { USD: '1', EUR: '0.8' } : { EUR: '1', USD: '1.25' }),
  )
  await replaceRates(farthing.ctx.db, source, { asOf: new Date(), perBase }, new Date())
}

for (const operation of operations) {
  test(`${operation.id} answers as documented, for success and for refusals`, async () => {
    const planned = await calls[operation.id]?.()
    assert(planned, `${operation.id} is in the document but not in this test`)
    const seen = new Set<number>()
    for (const call of planned) {
      const answer = await perform(operation, call)
      assert.equal(answer.statusCode, call.status, `${operation.id}: ${answer.body}`)
      assertDocumented(operation, answer)
      seen.add(answer.statusCode)
    }
    assert(
      [200, 201, 202].some((status) => seen.has(status)),
      'no call succeeded',
    )
    if (operation.isKeyed) {
      const [call = { status: 0 }] = planned
      const stranger = { ...shop, call: send.bind(null, farthing.app) } as StoreClient
      const refused = await perform(operation, { ...call, by: stranger })
      assert.equal(refused.statusCode, 401, refused.body)
      assertDocumented(operation, refused)
    }
  })
}

test('this file covers exactly the documented operations, and operation ids are unique', () => {
  const ids = operations.map(({ id }) => id)
  assert.deepEqual(Object.keys(calls).sort(), ids.toSorted())
  assert.equal(new Set(ids).size, ids.length)
})
