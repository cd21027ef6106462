import assert from 'node:assert/strict'
import type { Checkout, CreateCheckout, Event, EventPage, ProblemDetails, Wallet } from '@farthing/sdk'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { numberEvents } from '../../src/checkouts/number-events.ts'
import type { ProblemCode } from '../../src/problems.ts'
import { makeStore, type TestApp, type TestStore } from './app.ts'

export type Answer = LightMyRequestResponse
export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'OPTIONS'
type Headers = Readonly<Record<string, string>>

/** More wallets whose keys no test uses: accounts of the well-known test phrase, in EIP-55 form. */
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

/** A store and its API client: every call carries the store's key. */
export type StoreClient = TestStore & {
  readonly id: string
  call(method: Method, path: string, body?: unknown, headers?: Headers): Promise<Answer>
  /** Creates a checkout and asserts that it succeeds. */
  create(change?: Partial<CreateCheckout>): Promise<Checkout>
  /** The store's whole log, after waiting events have been given their sequence numbers. */
  events(): Promise<Event[]>
}

export async function openStore(
  test: TestApp,
  options: Parameters<typeof makeStore>[1] = {},
  app: FastifyInstance = test.app,
): Promise<StoreClient> {
  const made = await makeStore(test.ctx, options)
  const call: StoreClient['call'] = (method, path, body, headers) =>
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
      await numberEvents(test.ctx)
      const answer = await call('GET', '/api/v1/events?limit=100')
      assert.equal(answer.statusCode, 200, answer.body)
      return answer.json<EventPage>().data
    },
  }
}

/** Sends text and bytes as they are, anything else as JSON. */
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

/** Asserts that the values at these pointers were refused, and no others. */
export function assertInvalid(answer: Answer, ...pointers: string[]): void {
  const { errors = [] } = assertProblem(answer, 422, 'invalid_request')
  assert.deepEqual([...new Set(errors.map(({ pointer }) => pointer))].sort(), pointers.sort(), answer.body)
}

export async function registerWallet(
  shop: StoreClient,
  walletAddress: string,
  family: 'evm' | 'solana' = 'evm',
  custodialType = 'NON_CUSTODIAL',
): Promise<Wallet> {
  const path = `/api/v1/stores/${shop.id}/wallets/${family}`
  const answer = await shop.call('POST', path, { walletAddress, custodialType })
  assert.equal(answer.statusCode, 201, answer.body)
  return answer.json<Wallet>()
}
