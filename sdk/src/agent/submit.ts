import { delayMs, readRetryAfter, wait } from '../wait.ts'
import type { Checkout, PaymentRequired, ProblemDetails, Settlement } from '../wire.ts'

/**
 * Submits a payment to a checkout until the server gives a definite answer. Anything else leaves the outcome unknown: a
 * lost connection, a proxy's error page, an overloaded server, a payment that is still being settled. Then the same
 * request is sent again, with the same payment.
 */

export type Verdict =
  | { readonly kind: 'paid'; readonly checkout: Checkout; readonly settlement: Settlement }
  /** Not paid; says how to pay. If a payment was submitted, it was refused and `error` says why. */
  | { readonly kind: 'required'; readonly required: PaymentRequired }
  /** Refused for good. */
  | { readonly kind: 'refused'; readonly problem: ProblemDetails }
  | { readonly kind: 'unknown'; readonly lastAnswer: Unclear | null; readonly transaction: string | null }

type Unclear = { readonly status: number; readonly code: string | null }

export type CallOptions = {
  /** Used instead of the global `fetch`. */
  readonly fetch?: typeof fetch
  readonly signal?: AbortSignal
  /** How long to keep retrying. Default 120,000. */
  readonly timeoutMs?: number
  /** Called after each answer, or lack of one, that leaves the outcome open, before the same request is sent again. */
  readonly onWait?: (wait: Waiting) => void
}

/** What `pay` waits for. */
export type Waiting = {
  /** Whether a signed payment is part of the request. If not, nothing is at stake. */
  readonly isSigned: boolean
  /** HTTP status; null if no answer came. */
  readonly status: number | null
  /** The problem's code and detail, if the answer was a problem. */
  readonly code: string | null
  readonly detail: string | null
}

export const timeoutMsDefault = 120_000
/** The server holds the request open for up to 25 s while it settles. */
export const answerTimeoutMs = 45_000

/** After one of these problems the checkout will never accept this payment. Others may be temporary. */
const finalCodes: ReadonlySet<string> = new Set([
  'malformed_payment',
  'not_found',
  'already_paid',
  'authorization_used',
  'payment_not_applied',
  'payment_identifier_reused',
  'checkout_expired',
  'checkout_canceled',
  'link_closed',
  'link_ended',
])

/** Requests the checkout, with a signed payment or without (null), until the answer is definite or the time is up. */
export async function submit(
  url: string,
  checkoutId: string,
  payment: string | null,
  options: CallOptions,
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
    const { status = null, body } = answer ?? {}
    const code = typeof body?.code === 'string' ? body.code : null
    const detail = typeof body?.detail === 'string' ? body.detail : null
    if (isPatient) {
      options.onWait?.({ isSigned: payment !== null, status, code, detail })
      await wait(delay, options.signal)
    }
    if (!isPatient || options.signal?.aborted)
      return { kind: 'unknown', lastAnswer: status === null ? null : { status, code }, transaction }
  }
}

type Answer = {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>> | null
  readonly settlement: Settlement | null
  readonly retryAfterSeconds: number | null
}

async function post(url: string, payment: string | null, options: CallOptions): Promise<Answer | null> {
  const patience = AbortSignal.timeout(answerTimeoutMs)
  const send = options.fetch ?? ((at: string | URL | Request, init?: RequestInit) => fetch(at, init))
  try {
    const answer = await send(url, {
      method: 'POST',
      headers: { accept: 'application/json', ...(payment !== null && { 'payment-signature': payment }) },
      // A payment is only for the URL that requested it, never for a redirect's target.
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

export function readSettlement(header: string | null): Settlement | null {
  const settlement = readEncoded(header)
  return typeof settlement?.transaction === 'string' ? (settlement as unknown as Settlement) : null
}

/** The JSON object in one of x402's headers. */
export function readEncoded(header: string | null): Record<string, unknown> | null {
  try {
    return header === null ? null : asRecord(JSON.parse(atob(header)))
  } catch {
    return null
  }
}

function asRecord(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null
}
