/**
 * The HTTP interface that this project was asked to implement, checked line by line. Most names quote a sentence or a
 * table row of its specification, which is not part of this repository. "Section" numbers, in names and in comments,
 * are the specification's own; each group of tests below starts with its section's number and title.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Checkout, PaymentRequired, PaymentRequirements, StoreCheckout } from '@farthing/sdk'
import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http'
import { openTestApp, wallet } from '../support/app.ts'
import { completeByHand, encodePayment, paymentFor } from '../support/by-hand.ts'
import {
  type Answer,
  assertInvalid,
  assertProblem,
  openStore,
  order,
  send,
  solanaWallets,
} from '../support/store.ts'

const farthing = await openTestApp()
const shop = await openStore(farthing)
const startedAt = new Date()
const created = await shop.call('POST', '/api/v1/checkouts', {
  ...order,
  successRedirectUrl: 'https://shop.example/thanks?order=1',
})
const checkout = created.json<Checkout>()
const pay = (headers?: Record<string, string>) =>
  send(farthing.app, 'POST', `/api/v1/checkouts/${checkout.id}`, undefined, headers)
const step1 = await pay()
const required = step1.json<PaymentRequired>()
const [accepted] = required.accepts as [PaymentRequirements]

// 2.1 Checkout
test('| id | string | Checkout identifier, prefix `ch_` followed by characters. Assigned by the service. |', () => {
  assert.match(checkout.id, /^ch_.+$/)
})
test("| orderId | string | The store's own order identifier, echoed from the request. |", () => {
  assert.equal(checkout.orderId, order.orderId)
})
test('| priceAmount | string | Decimal amount, quoted in `priceCurrency`. Sent as a string, not a number. |', () => {
  assert.equal(checkout.priceAmount, '12.50')
})
test('| priceCurrency | string | ISO 4217 currency code. |', () => {
  assert.equal(checkout.priceCurrency, 'USD')
})
test('| status | string | See section 3. |', () => {
  assert.equal(checkout.status, 'OPEN')
})
test('| expiresAt | string | ISO 8601 UTC timestamp after which the checkout is no longer payable. |', () => {
  assert.match(checkout.expiresAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert(new Date(checkout.expiresAt) > new Date(checkout.createdAt))
})
test('| checkoutUrl | string | URL of the hosted payment page for this checkout: {checkout_page_url}/<checkout_id>. |', () => {
  assert.equal(checkout.checkoutUrl, `https://pay.farthing.example/c/${checkout.id}`)
})
test('| createdAt | string | ISO 8601 UTC timestamp. |', () => {
  assert.match(checkout.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  const createdAt = new Date(checkout.createdAt)
  assert(createdAt >= startedAt && createdAt <= new Date())
})
test('| successRedirectUrl | string or null | Where the buyer is sent after a successful payment. Null when none was supplied (null is shown in a completed checkout). |', async () => {
  assert.equal(checkout.successRedirectUrl, 'https://shop.example/thanks?order=1')
  const plain = await shop.create()
  assert.equal(plain.successRedirectUrl, null)
  await completeByHand(farthing, plain.id)
  const paid = await send(farthing.app, 'POST', `/api/v1/checkouts/${plain.id}`)
  assert.equal(paid.json<Checkout>().successRedirectUrl, null)
  assert.equal(paid.json<Checkout>().status, 'COMPLETED')
})
test('The Checkout object has exactly the nine fields of section 2.1, for the store and for the payer', async () => {
  const fields =
    'checkoutUrl createdAt expiresAt id orderId priceAmount priceCurrency status successRedirectUrl'
  assert.equal(Object.keys(checkout).sort().join(' '), fields)
  const { id } = await shop.create()
  await completeByHand(farthing, id)
  const paid = await send(farthing.app, 'POST', `/api/v1/checkouts/${id}`)
  assert.equal(Object.keys(paid.json()).sort().join(' '), fields)
})

// 2.2 Wallet registration body, for both families (4.2 and 4.3)
for (const [family, title, walletAddress, other] of [
  ['solana', 'Solana', solanaWallets[0], solanaWallets[1]],
  ['evm', 'EVM', wallet, '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'],
] as const) {
  const path = `/api/v1/stores/${shop.id}/wallets/${family}`
  const register = (body: unknown, headers = {}) => shop.call('POST', path, body, headers)

  test(`${title}: \`POST /api/v1/stores/{storeId}/wallets/${family}\` — Response: status 201.`, async () => {
    const answer = await register({ walletAddress, custodialType: 'NON_CUSTODIAL' })
    assert.equal(answer.statusCode, 201, answer.body)
    assert.equal(answer.json().walletAddress, walletAddress)
  })
  test(`${title}: | walletAddress | string | yes | Address of the wallet in the family's own format. |`, async () => {
    assertInvalid(await register({ custodialType: 'CUSTODIAL' }), '/walletAddress')
    assertInvalid(await register({ walletAddress: 1, custodialType: 'CUSTODIAL' }), '/walletAddress')
    const foreign = family === 'evm' ? solanaWallets[0] : wallet
    assertInvalid(await register({ walletAddress: foreign, custodialType: 'CUSTODIAL' }), '/walletAddress')
  })
  test(`${title}: | custodialType | enum string | yes | The type of custodial wallet this is. Allowed values: \`CUSTODIAL\`, \`NON_CUSTODIAL\`. |`, async () => {
    const answer = await register({ walletAddress: other, custodialType: 'CUSTODIAL' })
    assert.equal(answer.statusCode, 201, answer.body)
    assert.equal(answer.json().custodialType, 'CUSTODIAL')
    assertInvalid(await register({ walletAddress }), '/custodialType')
    for (const custodialType of ['custodial', 'SELF', '', null, true])
      assertInvalid(await register({ walletAddress, custodialType }), '/custodialType')
  })
  test(`${title}: Path parameter: \`storeId\` (string, required).`, async () => {
    const answer = await shop.call('POST', `/api/v1/stores/st_none/wallets/${family}`, {
      walletAddress,
      custodialType: 'CUSTODIAL',
    })
    assertProblem(answer, 404, 'not_found')
  })
  test(`${title}: Header: \`x-api-key: <STORE_API_KEY>\` (required); \`Content-Type: application/json\`.`, async () => {
    const body = { walletAddress, custodialType: 'NON_CUSTODIAL' }
    assertProblem(await send(farthing.app, 'POST', path, body), 401, 'invalid_api_key')
    assertProblem(await register(body, { 'content-type': 'text/plain' }), 415, 'unsupported_media_type')
    const upper = await send(farthing.app, 'POST', path, body, { 'X-API-Key': shop.key })
    assert.equal(upper.statusCode, 201)
  })
}

// 2.3 x402 payment requirements
test('| x402Version | integer | Protocol version of the body; the documented value is 2. |', () => {
  assert.equal(required.x402Version, 2)
})
test('| resource | object | Fields: `url` (string, the URL of the checkout endpoint being paid), `description` (string, text naming the checkout and its order), `mimeType` (string, media type of the resource, `application/json`). |', () => {
  assert.equal(required.resource.url, `https://farthing.example/api/v1/checkouts/${checkout.id}`)
  assert(required.resource.description.includes(checkout.id))
  assert(required.resource.description.includes(order.orderId))
  assert.equal(required.resource.mimeType, 'application/json')
})
test('| accepts | array of objects | One entry per accepted way to pay. |', () => {
  assert.equal(required.accepts.length, 1)
})
test('| network | string | CAIP-2 chain identifier, for example of the form `eip155:<chain_number>`. |', () => {
  assert.match(accepted.network, /^eip155:[1-9]\d*$/)
})
test('| scheme | string | Payment scheme; the documented value is `exact`. |', () => {
  assert.equal(accepted.scheme, 'exact')
})
test('| asset | string | Token contract address on the network. |', () => {
  assert.match(accepted.asset, /^0x[0-9a-fA-F]{40}$/)
})
test('| maxTimeoutSeconds | integer | Seconds; the documented value is 300. |', () => {
  assert.equal(accepted.maxTimeoutSeconds, 300)
})
test('| extra | object | Token metadata: `name` (string, token symbol) and `version` (string). |', () => {
  // A deliberate deviation: `name` is the name in the token's EIP-712 domain. With the symbol, no signature would settle.
  assert.deepEqual(accepted.extra, { name: 'USD Coin', version: '2' })
})
test("| amount | string | Integer amount in the token's smallest unit. For a token with 6 decimals, 1 token is 1000000 units. |", async () => {
  assert.equal(accepted.amount, '12500000')
  const { id } = await shop.create({ priceAmount: '1' })
  const one = await send(farthing.app, 'POST', `/api/v1/checkouts/${id}`)
  assert.equal(one.json<PaymentRequired>().accepts[0]?.amount, '1000000')
})
test('| payTo | string | Address that receives the payment. |', () => {
  assert.equal(accepted.payTo, wallet)
})
test('Payment requirements have exactly the fields of section 2.3', () => {
  assert.equal(Object.keys(required).sort().join(' '), 'accepts resource x402Version')
  assert.equal(Object.keys(required.resource).sort().join(' '), 'description mimeType url')
  assert.equal(
    Object.keys(accepted).sort().join(' '),
    'amount asset extra maxTimeoutSeconds network payTo scheme',
  )
})

// 3. States and transitions
test('| (none) | Create checkout (POST /api/v1/checkouts) | Valid request | OPEN | Checkout gets id, checkoutUrl, createdAt, expiresAt. |', async () => {
  const made = await shop.create()
  assert.equal(made.status, 'OPEN')
  const read = await shop.call('GET', `/api/v1/checkouts/${made.id}`)
  assert.deepEqual(read.json(), { ...made, payment: null })
})

// 4.1 Create a checkout
test('`POST /api/v1/checkouts` — Response: the Checkout object of section 2.1, with status `OPEN` on creation.', () => {
  assert.equal(created.statusCode, 201)
  assert.match(String(created.headers['content-type']), /^application\/json\b/)
  assert.equal(checkout.status, 'OPEN')
})
for (const [field, row] of [
  ['orderId', "| orderId | string | yes | The store's internal order identifier. |"],
  ['priceAmount', '| priceAmount | string | yes | Decimal amount in `priceCurrency`. |'],
  ['priceCurrency', '| priceCurrency | string | yes | ISO 4217 currency code. |'],
] as const) {
  test(row, async () => {
    const { [field]: _, ...without } = order
    assertInvalid(await shop.call('POST', '/api/v1/checkouts', without), `/${field}`)
    for (const value of [12.5, null, true, [], {}])
      assertInvalid(await shop.call('POST', '/api/v1/checkouts', { ...order, [field]: value }), `/${field}`)
  })
}
test('| successRedirectUrl | string | no | Buyer redirect after successful payment. |', async () => {
  assert.equal((await shop.call('POST', '/api/v1/checkouts', order)).statusCode, 201)
  const answer = await shop.call('POST', '/api/v1/checkouts', { ...order, successRedirectUrl: 7 })
  assertInvalid(answer, '/successRedirectUrl')
})
test('Headers: `X-API-Key: <STORE_API_KEY>` (required), `Content-Type: application/json`.', async () => {
  for (const name of ['X-API-Key', 'x-api-key']) {
    const answer = await send(farthing.app, 'POST', '/api/v1/checkouts', order, { [name]: shop.key })
    assert.equal(answer.statusCode, 201, name)
  }
  assertProblem(await send(farthing.app, 'POST', '/api/v1/checkouts', order), 401, 'invalid_api_key')
  const asForm = { 'content-type': 'application/x-www-form-urlencoded' }
  const answer = await shop.call('POST', '/api/v1/checkouts', 'orderId=1', asForm)
  assertProblem(answer, 415, 'unsupported_media_type')
})

// 4.4 Pay a checkout with x402
test('| 1. No payment | No `PAYMENT-SIGNATURE` header. | Status 402. Header `PAYMENT-REQUIRED` holding the Base64-encoded payment requirements. JSON body: payment requirements (section 2.3). |', () => {
  assert.equal(step1.statusCode, 402)
  assert.match(String(step1.headers['content-type']), /^application\/json\b/)
  const header = headerOf(step1, 'payment-required')
  assert.equal(Buffer.from(header, 'base64').toString(), step1.body)
  assert.deepEqual(decodePaymentRequiredHeader(header), required)
})
// These two tests settle by hand in the database. They check the answer to the payment that was settled.
test('| 2. With payment | Same POST with header `PAYMENT-SIGNATURE` holding the Base64-encoded payment proof. | After verification: status 200, header `PAYMENT-RESPONSE` holding the Base64-encoded settlement response, JSON body: the Checkout object (status `COMPLETED`). |', async () => {
  const { answer, id, transaction } = await paidByHand()
  assert.equal(answer.statusCode, 200, answer.body)
  const settlement = decodePaymentResponseHeader(headerOf(answer, 'payment-response'))
  assert.equal(settlement.success, true)
  assert.equal(settlement.transaction, transaction)
  assert.equal(settlement.network, 'eip155:8453')
  assert.equal(answer.json<Checkout>().status, 'COMPLETED')
  assert.equal(answer.json<Checkout>().id, id)
})
test('| OPEN | x402 retry with PAYMENT-SIGNATURE on POST /api/v1/checkouts/{checkoutId} | Payment verified and settled | COMPLETED | Response is 200 with the checkout and a PAYMENT-RESPONSE header. |', async () => {
  const { answer, id } = await paidByHand()
  assert.equal(answer.statusCode, 200, answer.body)
  const read = (await shop.call('GET', `/api/v1/checkouts/${id}`)).json<StoreCheckout>()
  assert.deepEqual({ ...answer.json<Checkout>(), payment: read.payment }, read)
  assert.equal(read.status, 'COMPLETED')
})
test('Request body: none.', async () => {
  assert.equal((await pay({ 'content-length': '0' })).statusCode, 402)
  assert.equal((await pay({ 'content-type': 'application/json' })).statusCode, 402)
})
test('| Base mainnet | USDC | `eip155:8453` | `BASE_MAINNET` |', async () => {
  assert.equal(accepted.network, 'eip155:8453')
  assert.equal(accepted.asset, '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913')
  const networks = await send(farthing.app, 'GET', '/api/v1/networks')
  const base = networks
    .json<{ data: { chainId: string }[] }>()
    .data.find(({ chainId }) => chainId === 'BASE_MAINNET')
  assert.deepEqual(base, {
    name: 'Base',
    chainId: 'BASE_MAINNET',
    network: 'eip155:8453',
    family: 'EVM',
    mode: 'live',
    assets: [{ symbol: 'USDC', address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', decimals: 6 }],
  })
})

// 5. Authentication
test('The store key is written with the prefix `sk_`.', () => {
  assert.match(shop.key, /^sk_/)
})
test('A missing or invalid key is an authentication failure', async () => {
  for (const key of [undefined, '', 'sk_', shop.key.slice(0, -1), `${shop.key}0`, ` ${shop.key}x`]) {
    const headers = key === undefined ? {} : { 'x-api-key': key }
    const answer = await send(farthing.app, 'POST', '/api/v1/checkouts', order, headers)
    assertProblem(answer, 401, 'invalid_api_key')
    assert.equal(answer.headers['www-authenticate'], 'ApiKey')
  }
})
test('Calls to the x402 endpoint need no key, and a key that is sent is ignored', async () => {
  assert.equal(step1.statusCode, 402)
  assert.equal((await pay({ 'x-api-key': 'sk_live_wrong' })).statusCode, 402)
})

// 7. Errors, 8. Limits, 9. Versioning
test('| 402 | x402 endpoint called without payment proof: body and `PAYMENT-REQUIRED` header carry the requirements. |', async () => {
  const atPage = await send(farthing.app, 'POST', `/c/${checkout.id}`)
  assert.equal(atPage.statusCode, 402)
  assert.deepEqual(decodePaymentRequiredHeader(headerOf(atPage, 'payment-required')), atPage.json())
})
test('The version is part of the path: `/api/v1/...`.', async () => {
  for (const path of ['/api/checkouts', '/api/v2/checkouts', '/checkouts'])
    assertProblem(await shop.call('POST', path, order), 404, 'not_found')
})

function headerOf(answer: Answer, name: string): string {
  const value = answer.headers[name]
  assert(typeof value === 'string', `no ${name}`)
  return value
}

async function paidByHand(): Promise<{ answer: Answer; id: string; transaction: string }> {
  const { id } = await shop.create()
  const payment = paymentFor((await send(farthing.app, 'POST', `/api/v1/checkouts/${id}`)).json())
  const transaction = await completeByHand(farthing, id, payment.payload.authorization.nonce)
  const headers = { 'PAYMENT-SIGNATURE': encodePayment(payment) }
  const answer = await send(farthing.app, 'POST', `/api/v1/checkouts/${id}`, undefined, headers)
  return { answer, id, transaction }
}
