import assert from 'node:assert/strict'
import type { PaymentRequired } from '@farthing/sdk'
import { decodePaymentResponseHeader } from '@x402/core/http'
import type { LightMyRequestResponse } from 'fastify'
import type { Hex } from 'viem'
import { openDatabase } from '../../src/database/db.ts'
import { openRails } from '../../src/payments/rails.ts'
import { openReadiness } from '../../src/payments/settlers/readiness.ts'
import { startWorker } from '../../src/worker.ts'
import type { openTestApp } from './app.ts'
import { atEnd } from './at-end.ts'
import { urlAs } from './database.ts'
import { until } from './until.ts'

type App = Awaited<ReturnType<typeof openTestApp>>

type Settlement<TransactionId> = {
  readonly success: boolean
  readonly transaction: TransactionId
  readonly errorReason?: string
  readonly errorMessage?: string
  readonly payer: string
  readonly network: string
}

/** The requests that a store and its payers make to the application, whatever the chain. */
export function openClient(app: App, key: string) {
  const create = async (priceAmount = '1.00', more: object = {}): Promise<string> => {
    const payload = { orderId: 'order-1', priceAmount, priceCurrency: 'USD', ...more }
    const headers = { 'x-api-key': key, 'content-type': 'application/json' }
    const answer = await app.request({ method: 'POST', url: '/api/v1/checkouts', headers, payload })
    assert.equal(answer.statusCode, 201, answer.body)
    return answer.json().id
  }
  let requests = 0
  const pay = async (checkoutId: string, header?: string): Promise<LightMyRequestResponse> =>
    await app.request({
      method: 'POST',
      url: `/api/v1/checkouts/${checkoutId}`,
      // Bad payments slow down the client address they come from.
      remoteAddress: `10.0.${(++requests >> 8) % 256}.${requests % 256}`,
      ...(header !== undefined && { headers: { 'payment-signature': header } }),
    })
  return {
    create,
    pay,
    require: async (checkoutId: string): Promise<PaymentRequired> => {
      const answer = await pay(checkoutId)
      assert.equal(answer.statusCode, 402, answer.body)
      return answer.json()
    },
    read: async (checkoutId: string) =>
      (await app.request({ url: `/api/v1/checkouts/${checkoutId}`, headers: { 'x-api-key': key } })).json(),
    settlementOf: <TransactionId = Hex>(answer: LightMyRequestResponse) =>
      decodePaymentResponseHeader(
        String(answer.headers['payment-response']),
      ) as unknown as Settlement<TransactionId>,
  }
}

/** Starts a worker in this process. It stops with the returned function, or when the file's tests are done. */
export function startWork(
  { ctx, databaseUrl }: App,
  signers: Parameters<typeof startWorker>[1] = [],
): () => Promise<void> {
  const db = openDatabase({ url: urlAs('work', databaseUrl), connections: 8, name: 'test-work' })
  const worker = startWorker({ ...ctx, db }, signers)
  let isStopped = false
  const stop = async () => {
    if (isStopped) return
    isStopped = true
    await worker.stop()
    await db.close()
  }
  atEnd(stop)
  return stop
}

/** Waits until the worker has read the chain and its lanes are live. */
export async function untilReady({ ctx }: App, caip2: string): Promise<void> {
  await until(
    'payments can be settled',
    async () => (await openReadiness(ctx, openRails(ctx))(caip2)) === null,
  )
}
