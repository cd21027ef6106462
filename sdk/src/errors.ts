import type { ProblemCode, ProblemDetails } from './wire.ts'

/**
 * Codes set by this package: no readable answer arrived, or the server asked to sign something other than the caller
 * wants.
 */
export type ClientCode = 'no_answer' | 'timeout' | 'unreadable_answer' | 'refund_mismatch'

type Failure = {
  readonly code: string
  readonly detail: string
  readonly status?: number | null
  readonly requestId?: string | null
  readonly retryAfterSeconds?: number | null
  readonly problem?: ProblemDetails | null
}

/** A failed request. Branch on `code`, log the message, and quote `requestId` when you ask for help. */
export class FarthingError extends Error {
  override readonly name = 'FarthingError'
  /** A `ProblemCode` or `ClientCode`, or a code that a newer server has added. */
  readonly code: ProblemCode | ClientCode | (string & {})
  /** What went wrong and what to do about it, for people. */
  readonly detail: string
  /** HTTP status. Null if no answer came: the request may or may not have taken effect. */
  readonly status: number | null
  readonly requestId: string | null
  /** How long the server asks you to wait before you retry. */
  readonly retryAfterSeconds: number | null
  /** The complete RFC 9457 problem, with `errors` for each invalid value and any fields specific to its code. */
  readonly problem: (ProblemDetails & Readonly<Record<string, unknown>>) | null

  constructor(failure: Failure, options?: ErrorOptions) {
    const { code, detail, requestId = null } = failure
    super(`${detail} (${requestId === null ? code : `${code}, ${requestId}`})`, options)
    this.code = code
    this.detail = detail
    this.status = failure.status ?? null
    this.requestId = requestId
    this.retryAfterSeconds = failure.retryAfterSeconds ?? null
    this.problem = (failure.problem ?? null) as FarthingError['problem']
  }
}
