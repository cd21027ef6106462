/** Signed offers and receipts, read by the protocol's own library and by our SDK. */
import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { PaymentRequired, Settlement } from '@farthing/sdk'
import { type Signed, verifyOffer, verifyReceipt } from '@farthing/sdk/receipts'
import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http'
import {
  decodeSignedOffers,
  extractOffersFromPaymentRequired,
  extractReceiptFromResponse,
  findAcceptsObjectFromSignedOffer,
  isJWSSignedOffer,
  isJWSSignedReceipt,
  verifyOfferSignatureJWS,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt'
import { ConfigError } from '../../src/config/read.ts'
import { openIssuer } from '../../src/payments/receipts.ts'
import { openNeighbour, openTestApp } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { completeByHand, encodePayment, payer, paymentFor, setStatus } from '../support/by-hand.ts'
import { freePort } from '../support/free-port.ts'
import { openStore } from '../support/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'farthing-receipts-'))
atEnd(() => rmSync(folder, { recursive: true }))
const privatePem = (key: KeyObject) => String(key.export({ format: 'pem', type: 'pkcs8' }))
const publicPem = (key: KeyObject) => String(createPublicKey(key).export({ format: 'pem', type: 'spki' }))
const newKey = () => generateKeyPairSync('ed25519').privateKey
let files = 0
function write(...pems: string[]): string {
  files += 1
  const file = join(folder, `${files}.pem`)
  writeFileSync(file, pems.join('\n'))
  return file
}

const key = newKey()
const port = await freePort()
// Two names of one machine stand for the two hosts that API and page may have.
const doors = [`http://127.0.0.1:${port}/api/v1/checkouts`, `http://localhost:${port}/c`] as const
const farthing = await openTestApp({
  BASE_URL: `http://127.0.0.1:${port}`,
  CHECKOUT_PAGE_URL: doors[1],
  RECEIPT_KEYS_FILE: write(privatePem(key)),
})
await farthing.app.listen({ host: 'localhost', port })
const shop = await openStore(farthing)

async function readOffers(url: string) {
  const answer = await fetch(url, { method: 'POST' })
  assert.equal(answer.status, 402)
  return decodePaymentRequiredHeader(String(answer.headers.get('payment-required')))
}

async function readReceipt(url: string): Promise<Signed> {
  const receipt = extractReceiptFromResponse(await fetch(url, { method: 'POST' }))
  assert(receipt && isJWSSignedReceipt(receipt))
  return receipt
}

async function readDid(url: string): Promise<unknown> {
  return await (await fetch(new URL('/.well-known/did.json', url))).json()
}

/** The signed text with other content, under the old signature. */
function tamper({ signature }: Signed, change: object): Signed {
  const [head, body = '', rest] = signature.split('.')
  const content = { ...JSON.parse(Buffer.from(body, 'base64url').toString()), ...change }
  return {
    format: 'jws',
    signature: `${head}.${Buffer.from(JSON.stringify(content)).toString('base64url')}.${rest}`,
  }
}

test('the stock library finds and accepts our offers and receipts at both addresses of a checkout', async () => {
  const { id, expiresAt } = await shop.create()
  const offers = await Promise.all(doors.map((door) => readOffers(`${door}/${id}`)))
  const paid = await completeByHand(farthing, id)
  for (const [i, required] of offers.entries()) {
    const signed = extractOffersFromPaymentRequired(required)
    assert.equal(signed.length, required.accepts.length)
    const [offer] = signed
    const [decoded] = decodeSignedOffers(signed)
    assert(offer && isJWSSignedOffer(offer) && decoded)
    // Without a key: the library fetches our DID document.
    const content = await verifyOfferSignatureJWS(offer)
    const validUntil = Math.floor(Date.parse(expiresAt) / 1_000)
    const { maxTimeoutSeconds: _, extra: __, ...terms } = required.accepts[0] ?? {}
    assert.deepEqual(content, { version: 1, resourceUrl: `${doors[i]}/${id}`, ...terms, validUntil })
    assert.equal(findAcceptsObjectFromSignedOffer(offer, required.accepts), required.accepts[0])

    const answer = await fetch(`${doors[i]}/${id}`, { method: 'POST' })
    const receipt = extractReceiptFromResponse(answer)
    assert(receipt && isJWSSignedReceipt(receipt))
    const said = await verifyReceiptSignatureJWS(receipt)
    assert.deepEqual([said.payer, said.transaction, said.network], [payer, paid, content.network])
    assert(verifyReceiptMatchesOffer(receipt, decoded, [payer]))

    const { payTo, amount, asset, network } = content
    const expect = { payTo, amount, asset, network, payer: payer.toLowerCase(), transaction: paid }
    const resourceUrl = `${doors[i]}/${id}`
    const verified = await verifyReceipt(receipt, { expect: { ...expect, resourceUrl } })
    assert(verified.isValid, JSON.stringify(verified))
    assert.equal(verified.host, new URL(doors[i] ?? '').host)
    assert((await verifyOffer(offer, { expect: { resourceUrl } })).isValid)
  }
})

test('a checkout has one signed offer: every process makes the same, every time', async () => {
  const { id } = await shop.create()
  const neighbour = await openNeighbour(farthing)
  const bodies = await Promise.all(
    [farthing.app, neighbour, farthing.app].map(
      async (app) => (await app.inject({ method: 'POST', url: `/c/${id}` })).body,
    ),
  )
  assert.equal(new Set(bodies).size, 1)
  assert.equal(
    (JSON.parse(bodies[0] ?? '') as PaymentRequired).extensions?.['offer-receipt'].info.offers.length,
    1,
  )
})

test('there is no receipt before a payment is as final as the store requires, nor after the chain dropped it', async () => {
  const { id } = await shop.create()
  const url = `${doors[0]}/${id}`
  const payment = paymentFor((await (await fetch(url, { method: 'POST' })).json()) as PaymentRequired)
  const ask = async (headers: Record<string, string> = {}) => await fetch(url, { method: 'POST', headers })
  const settlementOf = (answer: Response) =>
    decodePaymentResponseHeader(String(answer.headers.get('payment-response'))) as Settlement
  await completeByHand(farthing, id, payment.payload.authorization.nonce)
  assert(settlementOf(await ask()).extensions)
  await farthing.ctx.db.query("update checkouts set finality = 'finalized' where id = $1", [id])
  const unfinal = await ask()
  assert.deepEqual([unfinal.status, settlementOf(unfinal).extensions], [200, undefined])
  await setStatus(farthing, id, 'PROCESSING')
  const pending = await ask({ 'payment-signature': encodePayment(payment) })
  assert.deepEqual([pending.status, settlementOf(pending).extensions], [202, undefined])
  await farthing.ctx.db.query('update credits set orphaned_at = clock() where checkout_id = $1', [id])
  await setStatus(farthing, id, 'COMPLETED')
  const dropped = await ask()
  assert.deepEqual([dropped.status, dropped.headers.get('payment-response')], [409, null])
})

test('a receipt that was changed, signed by a foreign key or for another host is refused', async () => {
  const { id } = await shop.create()
  await completeByHand(farthing, id)
  const receipt = await readReceipt(`${doors[0]}/${id}`)
  const did = await readDid(doors[0])
  assert((await verifyReceipt(receipt, { did })).isValid)
  const codeOf = async (signed: unknown, options: Parameters<typeof verifyReceipt>[1] = { did }) => {
    const verified = await verifyReceipt(signed as Signed, options)
    return verified.isValid ? 'valid' : verified.code
  }
  assert.equal(await codeOf(tamper(receipt, { amount: '1' })), 'bad_signature')
  assert.equal(await codeOf(tamper(receipt, { resourceUrl: `https://evil.example/${id}` })), 'wrong_host')
  assert.equal(await codeOf(receipt, { did: await readDid(doors[1]) }), 'unknown_key')
  assert.equal(await codeOf(receipt, { did, now: new Date(0) }), 'wrong_time')
  assert.equal(await codeOf(receipt, { did, expect: { amount: '1' } }), 'mismatch')
  assert.equal(await codeOf(receipt, { did, expect: { orderId: 'x' } }), 'mismatch')
  assert.equal(await codeOf(receipt, { did: {} }), 'unknown_key')
  const payment = { network: 'eip155:8453', payer, transaction: '0x', asset: '0x', amount: '1', payTo: '0x' }
  const foreign = openIssuer(write(privatePem(newKey())))
  const forge = (url: string) =>
    foreign?.signReceipt(url, payment as never, new Date())['offer-receipt'].info.receipt
  assert.equal(await codeOf(forge(`${doors[0]}/${id}`)), 'unknown_key')
  const named = tamper(forge(`${doors[0]}/${id}`) as Signed, {})
  const borrowed = `${receipt.signature.split('.')[0]}.${named.signature.split('.').slice(1).join('.')}`
  assert.equal(await codeOf({ format: 'jws', signature: borrowed }), 'bad_signature')
  const unsigned = Buffer.from(JSON.stringify({ alg: 'none', kid: 'did:web:x#y' })).toString('base64url')
  for (const malformed of [
    null,
    {},
    { ...receipt, format: 'eip712' },
    { format: 'jws', signature: 'a.b' },
    { format: 'jws', signature: receipt.signature.replace(/^[^.]+/, unsigned) },
    { format: 'jws', signature: `${receipt.signature}.x` },
    { format: 'jws', signature: 'x'.repeat(10_000) },
  ])
    assert.equal(await codeOf(malformed), 'malformed')
})

test('a host is asked for keys only for what was expected, and not for more than a document of keys', async () => {
  const payment = { network: 'eip155:8453', payer, transaction: '0x', asset: '0x', amount: '1', payTo: '0x' }
  const sign = (url: string) => {
    const signed = openIssuer(write(privatePem(key)))?.signReceipt(url, payment as never, new Date())
    assert(signed)
    return signed['offer-receipt'].info.receipt
  }
  const asked: string[] = []
  let chunks = 0
  const endless = new ReadableStream({
    pull(controller) {
      chunks += 1
      assert(chunks < 100, 'read on and on')
      controller.enqueue(new Uint8Array(16_384).fill(32))
    },
  })
  const send = async (url: unknown) => {
    asked.push(String(url))
    return new Response(endless)
  }
  const [far, near] = ['https://evil.example/ch_1', 'http://127.0.0.1:6379/ch_1']
  for (const [url, expect, code] of [
    [far, { resourceUrl: 'https://shop.example/ch_1' }, 'mismatch'],
    [far, { payer: '0x' }, 'mismatch'],
    [near, { payer }, 'wrong_host'],
  ] as const) {
    const verified = await verifyReceipt(sign(url), { expect, fetch: send })
    assert.equal(verified.isValid || verified.code, code)
  }
  assert.deepEqual(asked, [])
  await assert.rejects(verifyReceipt(sign(far), { fetch: send }), /without a document that holds keys/)
  assert.equal(asked.length, 1)
})

test('an offer proves no payment, and is refused once it is over', async () => {
  const { id, expiresAt } = await shop.create()
  const required = await readOffers(`${doors[0]}/${id}`)
  const [offer] = extractOffersFromPaymentRequired(required)
  assert(offer && isJWSSignedOffer(offer))
  const did = await readDid(doors[0])
  const asReceipt = await verifyReceipt(offer, { did })
  assert(!asReceipt.isValid && asReceipt.code === 'malformed')
  const late = await verifyOffer(offer, { did, now: new Date(Date.parse(expiresAt) + 1_000) })
  assert(!late.isValid && late.code === 'wrong_time')
  const changed = await verifyOffer(tamper(offer, { validUntil: 9_999_999_999 }), { did })
  assert(!changed.isValid && changed.code === 'bad_signature')
})

test('after a rotation the new key signs, and the old one’s receipts are valid while its public half is published', async () => {
  const [older, newer] = [newKey(), newKey()]
  const url = 'https://pay.example/ch_1'
  const payment = {
    network: 'eip155:8453',
    payer,
    transaction: '0x1',
    asset: '0x2',
    amount: '1',
    payTo: '0x3',
  }
  const signBy = (...pems: string[]) => {
    const issuer = openIssuer(write(...pems))
    assert(issuer)
    const { receipt } = issuer.signReceipt(url, payment as never, new Date())['offer-receipt'].info
    return { receipt, did: issuer.describeKeys(url) }
  }
  const before = signBy(privatePem(older))
  const after = signBy(privatePem(newer), publicPem(older))
  const withdrawn = signBy(privatePem(newer))
  assert((await verifyReceipt(before.receipt, { did: after.did })).isValid)
  assert((await verifyReceipt(after.receipt, { did: after.did })).isValid)
  const gone = await verifyReceipt(before.receipt, { did: withdrawn.did })
  assert(!gone.isValid && gone.code === 'unknown_key')
  assert(!JSON.stringify(after.did).includes('"d"'), 'a private key was published')
})

test('a file of keys that cannot be used stops the start with a sentence', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
  const broken = '-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n'
  for (const file of [write(''), write(publicPem(key)), write(privatePem(rsa)), write(broken), '/none'])
    assert.throws(
      () => openIssuer(file),
      (error) => error instanceof ConfigError && /^RECEIPT_KEYS_FILE/.test(error.message),
    )
})

test('without a key nothing is signed and no keys are published', async () => {
  const plain = await openTestApp()
  const { id } = await (await openStore(plain)).create()
  const answer = await plain.request({ method: 'POST', url: `/c/${id}` })
  assert.equal('extensions' in answer.json(), false)
  assert.equal((await plain.request({ method: 'GET', url: '/.well-known/did.json' })).statusCode, 404)
})
