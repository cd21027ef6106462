import type { ProblemCode, ProblemDetails } from './wire.ts'

/** Codes of this package's own, for when the server's word did not arrive. */
export type ClientCode = 'no_answer' | 'timeout' | 'unreadable_answer'

type Failure = {
  readonly code: string
  readonly detail: string
  readonly status?: number | null
  readonly requestId?: string | null
  readonly retryAfterSeconds?: number | null
  readonly problem?: ProblemDetails | null
}

/** A request that did not succeed. Decide by `code`; show or log the message; name `requestId` when you ask for help. */
export class FarthingError extends Error {
  override readonly name = 'FarthingError'
  /** One of `ProblemCode` or `ClientCode`, or a code that was added since. */
  readonly code: ProblemCode | ClientCode | (string & {})
  /** What was wrong and what to do about it, for people. */
  readonly detail: string
  /** HTTP status. Null: no answer came, so whether the request took effect is not known. */
  readonly status: number | null
  readonly requestId: string | null
  /** When the server wants to be asked again. */
  readonly retryAfterSeconds: number | null
  /** The whole problem, RFC 9457, with `errors` for each wrong value and what else its code brings. */
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
