import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { Example, Examples } from '../../../src/http/reference/openapi.ts'
import { replaceRates } from '../../../src/rates/rows.ts'
import { sources } from '../../../src/rates/sources.ts'
import { bookAll } from '../../movements/support/books.ts'
import { openTestApp } from '../../support/app.ts'
import { completeByHand, creditByHand, payFinally } from '../../support/by-hand.ts'
import { openAs } from '../../support/database.ts'
import { startDeciding } from '../../support/decide.ts'
import { type Answer, openStore, type StoreClient, send, solanaWallets } from '../../support/store.ts'
import { payLinkByHand } from '../links/support/buyer.ts'
import { assertDocumented, documented, fillPath, operations } from './document.ts'
import { completeSigned, openSigning } from './signing.ts'

/**
 * The examples of the API reference: one store's story, told to the real application. Every operation is called, and each
 * answer is checked against the document. Ids, times, hashes and secrets differ from run to run, so they are replaced by
 * values that depend only on the order in which they appear.
 */

/** The second account of the well-known test phrase, whose key is public. */
const holderKey = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d'

type Call = {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  /** Another store's key. */
  readonly by?: StoreClient
}

export async function playExamples(): Promise<Examples> {
  const signing = await openSigning(holderKey)
  const { wallet: holder } = signing
  const networks = { NETWORKS: 'BASE_MAINNET,BASE_SEPOLIA,SIMULATED' }
  const farthing = await openTestApp({ ...documented, ...networks, ...signing.settings })
  await signing.follow(farthing)
  startDeciding(farthing)
  const begin = new Date()
  await loadRates(farthing, begin)
  const shop = await openStore(farthing, { evmWallet: holder.address })
  const seen = new Map<string, Example[]>()

  const call = async (
    id: string,
    { path, query = '', body, headers = {}, by = shop }: Call = {},
  ): Promise<Answer> => {
    const operation = operations.find((each) => each.id === id)
    assert(operation, `${id} is not documented`)
    const url = fillPath(operation.path, { storeId: shop.id, ...path }) + query
    const perform = operation.isKeyed ? by.call : send.bind(null, farthing.app)
    const answer = await perform(operation.method, url, body, headers)
    assertDocumented(operation, answer)
    const example: Example = {
      path: url,
      ...(Object.keys(headers).length > 0 && { headers }),
      ...(body && { body }),
      status: answer.statusCode,
      answer: answer.json(),
    }
    seen.set(id, [...(seen.get(id) ?? []), example])
    return answer
  }
  const succeed = async (id: string, details?: Call) => {
    const answer = await call(id, details)
    assert(answer.statusCode < 300, `${id}: ${answer.body}`)
    return answer.json()
  }

  // The store prepares.
  await succeed('getOwnStore')
  await succeed('getStore')
  await succeed('updateStore', {
    body: { name: 'Tea and Paper', accentColor: '#1f6f54', timeZone: 'Europe/Madrid', reportCurrency: 'EUR' },
  })
  await succeed('listNetworks')
  await succeed('listCurrencies')
  const evm = { walletAddress: holder.address, custodialType: 'NON_CUSTODIAL' }
  const { id: walletId } = await succeed('registerEvmWallet', { body: evm })
  const solana = await succeed('registerSolanaWallet', {
    body: { walletAddress: solanaWallets[0], custodialType: 'NON_CUSTODIAL' },
  })
  const { message } = await succeed('challengeWallet', { path: { walletId } })
  const signature = await holder.signMessage({ message })
  await succeed('proveWallet', { path: { walletId }, body: { signature } })
  await succeed('updateWallet', { path: { walletId }, body: { sharedElsewhere: false } })
  await succeed('retireWallet', { path: { walletId: solana.id } })
  await succeed('listWallets')
  const key = await succeed('createKey', {
    body: { label: 'shop server', preset: 'create', addresses: ['192.0.2.7'] },
  })
  await succeed('listKeys', { query: '?limit=1' })
  await succeed('rotateKey', { path: { keyId: key.id }, body: { overlapSeconds: 3600 } })
  await succeed('revokeKey', { path: { keyId: key.id } })
  const { id: endpointId } = await succeed('createWebhookEndpoint', {
    body: { url: 'https://shop.example/webhooks', types: ['checkout.created', 'checkout.completed'] },
  })

  // An order is paid.
  const order = { orderId: 'order-17', priceAmount: '19.90', priceCurrency: 'EUR' }
  const { id: checkoutId } = await succeed('createCheckout', {
    body: {
      ...order,
      successRedirectUrl: 'https://shop.example/thanks',
      description: 'A teapot and two cups',
      metadata: { table: '7' },
    },
    headers: { 'Idempotency-Key': 'order-17-1' },
  })
  const path = { checkoutId }
  for (const id of ['payCheckout', 'openCheckoutPage', 'payCheckoutPage']) await call(id, { path })
  await completeByHand(farthing, checkoutId)
  for (const id of ['payCheckout', 'openCheckoutPage', 'payCheckoutPage']) await succeed(id, { path })
  await succeed('getCheckout', { path })

  // Others are asked for by mail.
  const until = new Date(begin.getTime() + 30 * dayMs).toISOString()
  const { id: linkId, url } = await succeed('createLink', {
    body: { title: 'Two tickets for Saturday', priceAmount: '25.00', priceCurrency: 'EUR', until },
    headers: { 'Idempotency-Key': 'tickets-4711' },
  })
  await succeed('createLink', {
    body: {
      title: 'Your order of 3 November',
      priceCurrency: 'EUR',
      until,
      invoice: {
        number: '2026-17',
        dueDate: '2026-12-01',
        taxIncluded: false,
        lines: [
          { text: 'Teapot', quantity: '1', unitAmount: '40.00', taxRate: '21' },
          { text: 'Tea, 100 g', quantity: '3', unitAmount: '4.95', taxRate: '10' },
        ],
        buyerName: 'Ana Díaz',
        buyerAddress: 'Calle Mayor 1\n28013 Madrid',
      },
    },
  })
  await succeed('getLink', { path: { linkId } })
  await succeed('listLinks', { query: '?invoiceNumber=2026-17' })
  for (const id of ['payLink', 'openLinkPage']) await call(id, { path: { linkId } })
  const headers = { 'PAYMENT-SIGNATURE': await payLinkByHand(farthing, { url }) }
  for (const id of ['payLink', 'openLinkPage']) await succeed(id, { path: { linkId }, headers })
  await succeed('updateLink', { path: { linkId }, body: { status: 'CLOSED' } })

  // Others are not, or by hand.
  const canceled = await shop.create({ orderId: 'order-18' })
  await succeed('cancelCheckout', { path: { checkoutId: canceled.id } })
  const tests = await openStore(farthing, { mode: 'test' })
  const tried = await tests.create({ orderId: 'order-20' })
  const simulated = { checkoutId: tried.id, case: 'checkout.expired' }
  await succeed('simulate', { by: tests, body: simulated })
  const open = await shop.create({ orderId: 'order-19' })
  const [first, second] = [await creditByHand(farthing, open.id), await creditByHand(farthing, open.id)]
  await succeed('acceptPayment', { path: { paymentId: first }, body: { checkoutId: open.id } })
  await succeed('dismissPayment', {
    path: { paymentId: second },
    body: { note: 'Sent back by hand on Friday' },
  })
  await succeed('notePayment', { path: { paymentId: first }, body: { note: 'Paid for two orders' } })
  await succeed('getPayment', { path: { paymentId: first } })
  await succeed('listCheckouts', { query: '?status=COMPLETED&limit=1' })
  await succeed('listPayments', { query: '?disposition=exact' })

  // Money goes back.
  const returned = await shop.create({ orderId: 'order-20' })
  const refunded = { paymentId: await payFinally(farthing, returned.id) }
  const { id: refundId } = await succeed('createRefund', {
    path: refunded,
    body: { amount: '5000000', reason: 'One cup was broken' },
    headers: { 'Idempotency-Key': 'return-5' },
  })
  await succeed('getRefund', { path: { refundId } })
  await succeed('listRefunds', { query: `?checkoutId=${returned.id}` })
  const { typedData } = await succeed('prepareRefund', { path: { refundId } })
  void completeSigned(farthing, refundId)
  await succeed('signRefund', {
    path: { refundId },
    body: { signature: await signing.sign(typedData) },
  })
  const sent = await succeed('createRefund', {
    path: refunded,
    body: { amount: '2000000', way: 'self-sent' },
  })
  await succeed('nameRefundTransaction', {
    path: { refundId: sent.id },
    body: { reference: 'Withdrawal 4711 at the exchange' },
  })
  const plain = await creditByHand(farthing, returned.id)
  await farthing.ctx.db.query(
    'update credits set finalized_at = clock(), safe_at = clock() where payment_id = $1',
    [plain],
  )
  const asked = await succeed('createRefund', { path: { paymentId: plain }, body: {} })
  await bookAll({ ...farthing.ctx, db: openAs('work', farthing.databaseUrl) })
  await succeed('listMovements', { query: '?limit=2&details=true' })
  await succeed('createAddressRequest', { path: { refundId: asked.id } })
  await succeed('cancelRefund', { path: { refundId: asked.id } })

  // What happened is read and delivered.
  await shop.events()
  await succeed('listEvents', { query: '?type=checkout.created&limit=1' })
  await succeed('getWebhookEndpoint', { path: { endpointId } })
  await succeed('listWebhookEndpoints')
  const { data } = await succeed('listDeliveries', { path: { endpointId }, query: '?limit=1' })
  await succeed('getDelivery', { path: { deliveryId: data[0].id } })
  await succeed('redeliver', { path: { deliveryId: data[0].id } })
  await succeed('redeliverSince', { path: { endpointId }, body: { after: '1-0' } })
  await succeed('testWebhookEndpoint', { path: { endpointId } })
  await succeed('rollWebhookSecret', { path: { endpointId }, body: { overlapSeconds: 3600 } })
  await succeed('updateWebhookEndpoint', { path: { endpointId }, body: { status: 'disabled' } })
  await succeed('deleteWebhookEndpoint', { path: { endpointId } })

  return settle(Object.fromEntries(seen), begin)
}

async function loadRates(farthing: Awaited<ReturnType<typeof openTestApp>>, asOf: Date): Promise<void> {
  for (const source of sources) {
    const rates = source.base === 'USD' ? { USD: '1', EUR: '0.8' } : { EUR: '1', USD: '1.25' }
    const perBase = new Map(Object.entries(rates))
    await replaceRates(farthing.ctx.db, source, { asOf, perBase }, asOf)
  }
}

/** The story begins here, and takes no time: what happens within its first ten minutes happens at once. */
const settledBegin = Date.UTC(2026, 10, 15, 12)
const momentMs = 600_000
const dayMs = 86_400_000

function settle(examples: Examples, begin: Date): Examples {
  const counts = new Map<string, number>()
  const known = new Map<string, string>()
  const replaced = (kind: string, value: string, make: (digest: Buffer) => string): string => {
    const found = known.get(value)
    if (found !== undefined) return found
    const count = (counts.get(kind) ?? 0) + 1
    counts.set(kind, count)
    const made = make(createHash('sha512').update(`${kind} ${count}`).digest())
    known.set(value, made)
    return made
  }
  const text = JSON.stringify(examples)
    .replace(/\b([a-z]{2,3})_[0-9a-z]{28}\b/g, (id, prefix) =>
      replaced(prefix, id, (digest) => `${prefix}_00${base32(digest).slice(0, 26)}`),
    )
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (time) => {
      // A midnight is one in the story too, as many days later.
      if (time.endsWith('T00:00:00.000Z')) {
        const days = Math.floor(Date.parse(time) / dayMs) - Math.floor(begin.getTime() / dayMs)
        return new Date((Math.floor(settledBegin / dayMs) + days) * dayMs).toISOString()
      }
      // A time that was cut to whole seconds may be before the moment that it is in.
      const moments = Math.floor((Date.parse(time) + 1_000 - begin.getTime()) / momentMs)
      return new Date(settledBegin + moments * momentMs).toISOString()
    })
    .replace(/\bsk_live_(00[0-9a-z]{16})_[0-9a-z]{52}\b/g, (text, id) =>
      replaced('key', text, (digest) => `sk_live_${id}_${base32(digest).slice(0, 52)}`),
    )
    .replace(/\b00[0-9a-z]{16}\b|(?<=sk_live_)00[0-9a-z]{16}(?=_)/g, (id) =>
      replaced('key id', id, (digest) => `00${base32(digest).slice(0, 16)}`),
    )
    .replace(/\b0x[0-9a-f]{130}\b/g, (signature) =>
      replaced('signature', signature, (digest) => `0x${digest.toString('hex')}1b`),
    )
    .replace(/\b0x[0-9a-f]{64}\b/g, (hash) =>
      replaced('hash', hash, (digest) => `0x${digest.toString('hex', 0, 32)}`),
    )
    .replace(/(?<="PAYMENT-SIGNATURE":")[\w+/=]+/g, 'eyJ4NDAyVmVyc2lvbiI6Miwi…')
    .replace(/(?<="quote":"ch_\w+)\.[\w-]+\.[\w-]+/g, '.…')
    .replace(/(?<=Challenge: )[0-9a-z]+/g, (challenge) =>
      replaced('challenge', challenge, base32).slice(0, 26),
    )
    // One hour after the story's begin, in seconds.
    .replace(/(?<="validBefore":")\d+/g, String(settledBegin / 1_000 + 3_600))
    .replace(/(?<=\/refund\/00_)[\w-]{43}/g, (token) =>
      replaced('token', token, (digest) => digest.toString('base64url').slice(0, 43)),
    )
    .replace(/whsec_[\w+/=]+/g, (secret) =>
      replaced('secret', secret, (digest) => `whsec_${digest.toString('base64').slice(0, 43)}=`),
    )
  return JSON.parse(text)
}

function base32(bytes: Buffer): string {
  return [...bytes].map((byte) => '0123456789abcdefghjkmnpqrstvwxyz'[byte & 31]).join('')
}
