import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Checkout, PaymentRequired } from '@farthing/sdk'
import { decodePaymentResponseHeader } from '@x402/core/http'
import { type Payer, paymentHeader } from '../../support/chain/evm-payment.ts'
import { patienceMs } from '../../support/patience.ts'
import type { Answered } from '../adversity/invariants.ts'
import { until } from './processes.ts'

type Body = Readonly<Record<string, unknown>>

export type Answer = {
  readonly status: number
  readonly code: string
  readonly body: Body
  /** The transaction that paid. */
  readonly transaction: string | undefined
  /** Statuses of all earlier attempts; 0 if no answer came. */
  readonly before: readonly number[]
}

/** Longer than serve waits for an outcome. */
const requestTimeoutMs = 40_000

/**
 * A client as the documentation describes it: it retries with the same header until an answer is about the payment, so
 * after a failed connection, 202, 409 while a payment is in progress, or 5xx.
 */
export function openClient(options: { readonly key: string; readonly address: () => string }) {
  const headers = { 'x-api-key': options.key, 'content-type': 'application/json' }

  /** Sends one request. Returns null if no answer came. */
  async function request(path: string, init: RequestInit): Promise<Omit<Answer, 'before'> | null> {
    try {
      const response = await fetch(`${options.address()}${path}`, {
        ...init,
        signal: AbortSignal.timeout(requestTimeoutMs),
      })
      const body = (await response.json()) as Body
      const settlement = response.headers.get('payment-response')
      const transaction = settlement ? decodePaymentResponseHeader(settlement).transaction : undefined
      return { status: response.status, code: String(body.code ?? ''), body, transaction }
    } catch {
      return null
    }
  }

  const answers: Answered[] = []

  async function ask(checkoutId: string, header?: string): Promise<Omit<Answer, 'before'> | null> {
    const askedAt = new Date()
    const answer = await request(`/api/v1/checkouts/${checkoutId}`, {
      method: 'POST',
      ...(header !== undefined && { headers: { 'payment-signature': header } }),
    })
    if (answer) {
      const { status, transaction } = answer
      answers.push({ checkoutId, status, transaction, askedAt, answeredAt: new Date() })
    }
    return answer
  }

  /** Repeats one request until its answer is about the payment. */
  async function pay(checkoutId: string, header?: string): Promise<Answer> {
    const before: number[] = []
    const giveUpAt = Date.now() + patienceMs
    for (;;) {
      const answer = await ask(checkoutId, header)
      if (answer && isOutcome(answer)) return { ...answer, before }
      before.push(answer?.status ?? 0)
      assert(Date.now() < giveUpAt, `no outcome for ${checkoutId}: ${before.join(' ')} ${answer?.code ?? ''}`)
      await wait(100)
    }
  }

  /** Repeats a decision until it is applied. */
  async function accept(paymentId: string, checkoutId: string): Promise<Omit<Answer, 'before'>> {
    return await until('the payment is accepted', async () => {
      const body = JSON.stringify({ checkoutId })
      const answer = await request(`/api/v1/payments/${paymentId}/accept`, { method: 'POST', headers, body })
      return answer?.status === 200 && answer
    })
  }

  async function create(priceAmount = '1.00', more: object = {}): Promise<string> {
    const body = JSON.stringify({ orderId: 'order-1', priceAmount, priceCurrency: 'USD', ...more })
    const idempotencyKey = randomUUID()
    const made = await until('a checkout is created', async () => {
      const answer = await request('/api/v1/checkouts', {
        method: 'POST',
        headers: { ...headers, 'idempotency-key': idempotencyKey },
        body,
      })
      assert(!answer || answer.status === 201 || answer.status >= 500, JSON.stringify(answer))
      return answer?.status === 201 ? answer : null
    })
    return String(made.body.id)
  }

  const sign = async (
    checkoutId: string,
    payer: Payer,
    overrides: Parameters<typeof paymentHeader>[2] = {},
  ): Promise<string> => {
    const { status, body } = await pay(checkoutId)
    assert.equal(status, 402, JSON.stringify(body))
    return await paymentHeader(body as unknown as PaymentRequired, payer.key, overrides)
  }

  return {
    /** The answers to payment requests so far. */
    answers,
    request,
    ask,
    pay,
    accept,
    create,
    sign,
    /** Creates a checkout and signs for it. */
    async order(payer: Payer, overrides: Parameters<typeof paymentHeader>[2] = {}) {
      const id = await create()
      return { id, header: await sign(id, payer, overrides) }
    },
    async read(checkoutId: string): Promise<Checkout> {
      const answer = await until('the checkout is read', () =>
        request(`/api/v1/checkouts/${checkoutId}`, { headers: { 'x-api-key': options.key } }),
      )
      assert.equal(answer.status, 200, JSON.stringify(answer.body))
      return answer.body as unknown as Checkout
    },
  }
}

function isOutcome({ status, code }: { status: number; code: string }): boolean {
  return status !== 202 && status < 500 && code !== 'payment_in_progress'
}
