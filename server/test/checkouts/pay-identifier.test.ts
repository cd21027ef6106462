/** The x402 extension payment-identifier: a client's own name for a payment, which can name no other payment. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { declarePaymentIdentifierExtension, isValidPaymentId } from '@x402/extensions/payment-identifier'
import fc from 'fast-check'
import { readPaymentHeader } from '../../src/payments/payload.ts'
import { makeStore } from '../support/app.ts'
import { newPayer, type Payer } from '../support/chain/evm-payment.ts'
import { openShop, payTo, type Shop } from '../support/shop.ts'
import { alter, assertPaid, assertProblem, assertRefused, decode } from '../support/watch.ts'

const shop = await openShop()
const newIdentifier = () => randomBytes(16).toString('hex')

/** A payment that carries the extension the way a client sends it: the declaration with the id filled in. */
function withIdentifier(header: string, id: unknown): string {
  const { info, ...rest } = declarePaymentIdentifierExtension()
  return alter(header, (payload) => {
    payload.extensions = { 'payment-identifier': { ...rest, info: { ...info, id } } }
  })
}

async function signWith(at: Shop, checkoutId: string, payer: Payer, id: unknown): Promise<string> {
  return withIdentifier(await at.sign(checkoutId, payer), id)
}

async function fundBoth(): Promise<[Payer, Payer]> {
  return [await shop.fund(), await shop.fund()]
}

async function countTransfers(payer: Payer): Promise<number> {
  return (await shop.chain.transferLogs({ from: payer.address, to: payTo })).length
}

test('an identifier is 16 to 128 characters of A-Z, a-z, 0-9, _ and -, exactly as in the stock package', async () => {
  const id = await shop.create()
  const header = await shop.sign(id, newPayer())
  const alphabet = [...'ABCXYZabcxyz0129_-', ' ', '.', '/', '+', '=', 'é', '\n', '\0', '"', '😀']
  const identifiers = fc.oneof(
    fc
      .array(fc.constantFrom(...alphabet), { minLength: 0, maxLength: 140 })
      .map((letters) => letters.join('')),
    fc
      .array(fc.constantFrom(...alphabet.slice(0, 18)), { minLength: 14, maxLength: 18 })
      .map((letters) => letters.join('')),
    fc
      .array(fc.constantFrom(...alphabet.slice(0, 18)), { minLength: 126, maxLength: 130 })
      .map((letters) => letters.join('')),
    fc.jsonValue().filter((value) => value !== null),
  )
  fc.assert(
    fc.property(identifiers, (identifier) => {
      const read = readPaymentHeader(withIdentifier(header, identifier))
      assert.equal(read.kind, isValidPaymentId(identifier as string) ? 'present' : 'unreadable')
    }),
    { numRuns: 500 },
  )
})

test('a malformed identifier: 400 with the terms, and nothing is claimed; omitting it is fine', async () => {
  const payer = await shop.fund()
  const id = await shop.create()
  for (const wrong of [
    '',
    'short',
    'x'.repeat(15),
    'x'.repeat(129),
    'with space in it ok?',
    7,
    {},
    ['x'.repeat(20)],
  ]) {
    const answer = await shop.pay(id, await signWith(shop, id, payer, wrong))
    assert.equal(answer.statusCode, 400, answer.body)
    assert.equal(answer.json().code, 'malformed_payment')
    assert.deepEqual(decode<unknown>(String(answer.headers['payment-required'])), await shop.require(id))
  }
  assert.equal((await shop.read(id)).status, 'OPEN')
  assertPaid(await shop.pay(id, await signWith(shop, id, payer, undefined)))
})

test('identifiers of 16 and of 128 characters work; the same identifier with the same payment gets the same answer', async () => {
  for (const identifier of ['x'.repeat(16), 'Az09_-'.repeat(21).padEnd(128, '-')]) {
    const payer = await shop.fund()
    const id = await shop.create()
    const header = await signWith(shop, id, payer, identifier)
    const first = await shop.pay(id, header)
    assertPaid(first)
    const again = await shop.pay(id, header)
    assertPaid(again)
    assert.equal(again.headers['payment-response'], first.headers['payment-response'])
    assert.equal(await countTransfers(payer), 1)
  }
})

test('an identifier that named one payment cannot name another, for the same checkout or not: 409, nothing charged', async () => {
  const [payer, other] = await fundBoth()
  const [id, second] = [await shop.create(), await shop.create()]
  const identifier = newIdentifier()
  const later = await signWith(shop, id, other, identifier)
  assertPaid(await shop.pay(id, await signWith(shop, id, payer, identifier)))
  assertProblem(await shop.pay(id, later), 409, 'payment_identifier_reused')
  const elsewhere = await signWith(shop, second, payer, identifier)
  assertProblem(await shop.pay(second, elsewhere), 409, 'payment_identifier_reused')
  assert.equal((await shop.read(second)).status, 'OPEN')
  assert.deepEqual([await countTransfers(payer), await countTransfers(other)], [1, 0])
  assertPaid(await shop.pay(second, await signWith(shop, second, payer, newIdentifier())))
})

test('a refused payment does not use up its identifier', async () => {
  const payer = await shop.fund()
  const id = await shop.create()
  const identifier = newIdentifier()
  const refused = withIdentifier(await shop.sign(id, payer, { value: 1n }), identifier)
  assertRefused(shop, await shop.pay(id, refused), 'invalid_exact_evm_payload_authorization_value_mismatch')
  assertPaid(await shop.pay(id, await signWith(shop, id, payer, identifier)))
})

test('the same payment with its identifier five times at once: five identical 200s, one transfer', async () => {
  const payer = await shop.fund()
  const id = await shop.create()
  const header = await signWith(shop, id, payer, newIdentifier())
  const answers = await Promise.all(Array.from({ length: 5 }, () => shop.pay(id, header)))
  for (const answer of answers) assertPaid(answer)
  assert.equal(new Set(answers.map(({ headers }) => headers['payment-response'])).size, 1)
  assert.equal(await countTransfers(payer), 1)
})

test('one identifier on two simultaneous payments, for two checkouts or for one: one pays, the other gets 409', async () => {
  for (const isSame of [false, true]) {
    const payers = await fundBoth()
    const first = await shop.create()
    const ids = [first, isSame ? first : await shop.create()] as const
    const identifier = newIdentifier()
    const headers = [
      await signWith(shop, ids[0], payers[0], identifier),
      await signWith(shop, ids[1], payers[1], identifier),
    ] as const
    const answers = await Promise.all([shop.pay(ids[0], headers[0]), shop.pay(ids[1], headers[1])])
    const [paid, refused] = answers.toSorted((a, b) => a.statusCode - b.statusCode)
    assert(paid && refused)
    assertPaid(paid)
    assertProblem(refused, 409, 'payment_identifier_reused')
    assert.equal((await countTransfers(payers[0])) + (await countTransfers(payers[1])), 1)
  }
})

test('stores do not share identifiers: an identifier used in one is still free in another', async () => {
  const { key } = await makeStore(shop.ctx, { mode: 'test', evmWallet: payTo })
  const created = await shop.request({
    method: 'POST',
    url: '/api/v1/checkouts',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    payload: { orderId: 'order-1', priceAmount: '1.00', priceCurrency: 'USD' },
  })
  const [payer, other] = await fundBoth()
  const identifier = newIdentifier()
  const id = await shop.create()
  assertPaid(await shop.pay(id, await signWith(shop, id, payer, identifier)))
  const foreign = created.json().id
  assertPaid(await shop.pay(foreign, await signWith(shop, foreign, other, identifier)))
})
