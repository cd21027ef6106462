import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type {
  Checkout,
  CreateCheckout,
  Event,
  EventPage,
  PaymentRequired,
  ProblemDetails,
  Wallet,
} from '@farthing/sdk'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { openDatabase } from '../../src/database/db.ts'
import { assignWaitingSequences } from '../../src/events/assign-sequence.ts'
import { buildApp } from '../../src/http/app.ts'
import { newId, randomText } from '../../src/ids.ts'
import type { ProblemCode } from '../../src/problems.ts'
import { makeStore, type TestApp, type TestStore } from './app.ts'
import { atEnd } from './at-end.ts'

export type Answer = LightMyRequestResponse
export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'OPTIONS'
type Headers = Readonly<Record<string, string>>

/** Other wallets of nobody's: accounts of the well-known test phrase, as EIP-55 writes them. */
export const wallets = [
  '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
  '0x90F79bf6EB2c4f870365E785982E1f101E93b906',
] as const

/** 32 bytes of 1, 2 and 3 in base58. */
export const solanaWallets = [
  '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi',
  '8qbHbw2BbbTHBW1sbeqakYXVKRQM8Ne7pLK7m6CVfeR',
  'CktRuQ2mttgRGkXJtyksdKHjUdc2C4TgDzyB98oEzy8',
] as const

export const order: CreateCheckout = { orderId: 'order-1', priceAmount: '12.50', priceCurrency: 'USD' }

/** A store and its side of the conversation: every call shows the store's key. */
export type Shop = TestStore & {
  readonly id: string
  call(method: Method, path: string, body?: unknown, headers?: Headers): Promise<Answer>
  /** Creates a checkout, which must succeed. */
  create(change?: Partial<CreateCheckout>): Promise<Checkout>
  /** Everything that the store's log says, after what was waiting has been given its place. */
  events(): Promise<Event[]>
}

export async function openShop(
  test: TestApp,
  options: Parameters<typeof makeStore>[1] = {},
  app: FastifyInstance = test.app,
): Promise<Shop> {
  const made = await makeStore(test.ctx, options)
  const call: Shop['call'] = (method, path, body, headers) =>
    send(app, method, path, body, { 'x-api-key': made.key, ...headers })
  return {
    ...made,
    id: made.store.id,
    call,
    async create(change = {}) {
      const answer = await call('POST', '/api/v1/checkouts', { ...order, ...change })
      assert.equal(answer.statusCode, 201, answer.body)
      return answer.json<Checkout>()
    },
    async events() {
      await assignWaitingSequences(test.ctx)
      const answer = await call('GET', '/api/v1/events?limit=100')
      assert.equal(answer.statusCode, 200, answer.body)
      return answer.json<EventPage>().data
    },
  }
}

/** Text and bytes are sent as they are; anything else as JSON. */
export async function send(
  app: FastifyInstance,
  method: Method,
  path: string,
  body?: unknown,
  headers: Headers = {},
): Promise<Answer> {
  if (body === undefined) return await app.inject({ method, url: path, headers })
  const payload = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return await app.inject({
    method,
    url: path,
    payload,
    headers: { 'content-type': 'application/json', ...headers },
  })
}

/** The same application as another process on the same database would run it: nothing in memory is shared. */
export async function openNeighbour(test: TestApp): Promise<FastifyInstance> {
  const db = openDatabase({ url: test.databaseUrl, connections: 4, name: 'neighbour' })
  const app = buildApp({ ...test.ctx, db }, { isDraining: false })
  atEnd(async () => {
    await app.close()
    await db.close()
  })
  await app.ready()
  return app
}

/** Asserts that an answer is a problem in the full form of RFC 9457, and returns it. */
export function assertProblem(answer: Answer, status: number, code: ProblemCode): ProblemDetails {
  assert.equal(answer.statusCode, status, answer.body)
  assert.match(String(answer.headers['content-type']), /^application\/problem\+json\b/)
  assert.equal(answer.headers['cache-control'], 'no-store')
  const problem = answer.json<ProblemDetails>()
  assert.equal(problem.code, code, answer.body)
  assert.equal(problem.status, status)
  assert.equal(problem.type, `https://farthing.example/docs/errors/${code}`)
  assert.match(problem.requestId, /^req_/)
  assert(problem.title.length > 0 && problem.detail.length > 0)
  return problem
}

/** Asserts that the values at these places, and no others, were refused. */
export function assertInvalid(answer: Answer, ...pointers: string[]): void {
  const { errors = [] } = assertProblem(answer, 422, 'invalid_request')
  assert.deepEqual([...new Set(errors.map(({ pointer }) => pointer))].sort(), pointers.sort(), answer.body)
}

export async function registerWallet(
  shop: Shop,
  walletAddress: string,
  family: 'evm' | 'solana' = 'evm',
  custodialType = 'NON_CUSTODIAL',
): Promise<Wallet> {
  const path = `/api/v1/stores/${shop.id}/wallets/${family}`
  const answer = await shop.call('POST', path, { walletAddress, custodialType })
  assert.equal(answer.statusCode, 201, answer.body)
  return answer.json<Wallet>()
}

/** Puts a checkout into a status that no request of today leads to. */
export async function setStatus(test: TestApp, checkoutId: string, status: string): Promise<void> {
  const changed = await test.ctx.db.query('update checkouts set status = $2 where id = $1 returning id', [
    checkoutId,
    status,
  ])
  assert.equal(changed.length, 1)
}

/** Lets a checkout's time have passed, as the database's clock judges it. */
export async function letTimePass(test: TestApp, checkoutId: string): Promise<void> {
  const changed = await test.ctx.db.query(
    `update checkouts set created_at = created_at - interval '2 days', expires_at = clock() - interval '1 millisecond'
     where id = $1 returning id`,
    [checkoutId],
  )
  assert.equal(changed.length, 1)
}

export const payer = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65'

/**
 * The settlement's work by hand: the authorization with this nonce, its exact credit, and the checkout COMPLETED.
 * Returns the transaction's hash.
 */
export async function completeByHand(
  test: TestApp,
  checkoutId: string,
  nonce = `0x${randomBytes(32).toString('hex')}`,
): Promise<string> {
  const transaction = `0x${randomBytes(32).toString('hex')}`
  await test.ctx.db.query(
    `with option as (
       select c.id as checkout_id, c.store_id, o.network, lower(o.asset) as asset, o."payTo" as pay_to, o.amount
       from checkouts c, json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text)
       where c.id = $1 limit 1
     ), authorized as (
       insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
         valid_after, valid_before, signature, claimed_at)
       select network, asset, $4, $5, checkout_id, store_id, 'sent', pay_to, amount, 0, 1, decode('00', 'hex'), clock() from option
     )
     insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, nonce, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time,
       included_at)
     select network, $2, 0, $3, 1, clock(), $2, 0, asset, $4, $5, pay_to, amount, store_id, checkout_id, 'exact',
       clock(), clock()
     from option`,
    [checkoutId, transaction, `pay_${randomText(28)}`, payer.toLowerCase(), nonce],
  )
  await setStatus(test, checkoutId, 'COMPLETED')
  return transaction
}

/** A plain transfer that reached the first wallet of a checkout's options and is of no checkout. Returns its payment id. */
export async function creditByHand(test: TestApp, checkoutId: string): Promise<string> {
  const hash = `0x${randomBytes(32).toString('hex')}`
  const [row] = await test.ctx.db.query<{ payment_id: string }>(
    `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
       position, asset, payer, pay_to, amount, store_id, disposition, first_seen_block_time, included_at)
     select o.network, $2, 0, $3, 1, clock(), $2, 0, lower(o.asset), $4, lower(o."payTo"), o.amount + 1, c.store_id,
       'unmatched', clock(), clock()
     from checkouts c, json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text)
     where c.id = $1 limit 1
     returning payment_id`,
    [checkoutId, hash, newId('pay', '00', new Date()), payer.toLowerCase()],
  )
  assert(row)
  return row.payment_id
}

/** A payment as a stock client would send it, on the terms that were offered. The signature is nobody's. */
export function paymentFor(terms: PaymentRequired) {
  const [accepted] = terms.accepts
  assert(accepted)
  return {
    x402Version: 2,
    resource: terms.resource,
    accepted,
    payload: {
      signature: `0x${'22'.repeat(65)}`,
      authorization: {
        from: payer,
        to: accepted.payTo,
        value: accepted.amount,
        validAfter: '0',
        validBefore: String(Math.floor(Date.now() / 1_000) + 120),
        nonce: `0x${randomBytes(32).toString('hex')}`,
      },
    },
  }
}

export function encodePayment(payment: unknown): string {
  return Buffer.from(JSON.stringify(payment)).toString('base64')
}
