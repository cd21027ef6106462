import { delayMs, readRetryAfter, wait } from '../wait.ts'
import type { Checkout, PaymentRequired, ProblemDetails, Settlement } from '../wire.ts'

/**
 * Talks to a checkout's address until it says something that can be relied on. Whatever is not the server's own clear
 * word is not known: a lost connection, a proxy's page, a server in trouble, a payment that is still being settled. Then
 * the same request is made again, with the same payment.
 */

export type Verdict =
  | { readonly kind: 'paid'; readonly checkout: Checkout; readonly settlement: Settlement }
  /** Not paid: how it can be. With a payment: it was refused, and `error` says why. */
  | { readonly kind: 'required'; readonly required: PaymentRequired }
  /** No, for good. */
  | { readonly kind: 'refused'; readonly problem: ProblemDetails }
  | { readonly kind: 'unknown'; readonly lastAnswer: Unclear | null; readonly transaction: string | null }

type Unclear = { readonly status: number; readonly code: string | null }

export type Talk = {
  readonly fetch?: typeof fetch
  readonly signal?: AbortSignal
  /** How long to go on asking. Default 120,000. */
  readonly timeoutMs?: number
}

export const timeoutMsDefault = 120_000
/** The server holds an answer back for up to 25 s while it settles. */
const answerTimeoutMs = 45_000

/** Problems after which this payment will never be taken here. Others may pass. */
const finalCodes: ReadonlySet<string> = new Set([
  'malformed_payment',
  'not_found',
  'already_paid',
  'authorization_used',
  'payment_not_applied',
  'payment_identifier_reused',
  'checkout_expired',
  'checkout_canceled',
])

export async function handIn(
  url: string,
  checkoutId: string,
  payment: string | null,
  options: Talk,
): Promise<Verdict> {
  const end = Date.now() + (options.timeoutMs ?? timeoutMsDefault)
  let transaction: string | null = null
  for (let tries = 1; ; tries++) {
    const answer = await post(url, payment, options)
    const verdict = answer && judge(answer, checkoutId)
    if (verdict) return verdict
    transaction = answer?.settlement?.transaction || transaction
    const delay = delayMs(tries, answer?.retryAfterSeconds ?? null)
    const isPatient = Date.now() + delay <= end
    if (isPatient) await wait(delay, options.signal)
    if (!isPatient || options.signal?.aborted) {
      const { status, body } = answer ?? {}
      const code = typeof body?.code === 'string' ? body.code : null
      return { kind: 'unknown', lastAnswer: status === undefined ? null : { status, code }, transaction }
    }
  }
}

type Answer = {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>> | null
  readonly settlement: Settlement | null
  readonly retryAfterSeconds: number | null
}

async function post(url: string, payment: string | null, options: Talk): Promise<Answer | null> {
  const patience = AbortSignal.timeout(answerTimeoutMs)
  const send = options.fetch ?? ((at: string | URL | Request, init?: RequestInit) => fetch(at, init))
  try {
    const answer = await send(url, {
      method: 'POST',
      headers: { accept: 'application/json', ...(payment !== null && { 'payment-signature': payment }) },
      // A payment is for the address it was asked for, and for no other that this one points to.
      redirect: 'manual',
      signal: options.signal ? AbortSignal.any([patience, options.signal]) : patience,
    })
    return {
      status: answer.status,
      body: asRecord(await answer.json().catch(() => null)),
      settlement: readSettlement(answer.headers.get('payment-response')),
      retryAfterSeconds: readRetryAfter(answer.headers),
    }
  } catch {
    return null
  }
}

function judge({ status, body, settlement }: Answer, checkoutId: string): Verdict | null {
  if (!body) return null
  if (status === 200 && body.id === checkoutId && body.status === 'COMPLETED' && settlement?.success)
    return { kind: 'paid', checkout: body as Checkout, settlement }
  if (status === 402 && body.x402Version === 2)
    return { kind: 'required', required: body as unknown as PaymentRequired }
  if (status >= 400 && status < 500 && typeof body.code === 'string' && finalCodes.has(body.code))
    return { kind: 'refused', problem: body as unknown as ProblemDetails }
  return null
}

function readSettlement(header: string | null): Settlement | null {
  try {
    return header === null ? null : (asRecord(JSON.parse(atob(header))) as Settlement | null)
  } catch {
    return null
  }
}

function asRecord(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null
}
