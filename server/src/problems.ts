import type * as Wire from '@farthing/sdk'

/**
 * Every refusal we can explain: one table, each code with its status, a title, and what its reader should do next.
 * A Problem becomes RFC 9457 JSON in http/problem.ts. Anything else that is thrown is our bug and a 500.
 */
export const problems = {
  malformed_json: [
    400,
    'The body is not JSON',
    'Send one JSON object, without repeated keys, nested at most 8 deep.',
  ],
  malformed_payment: [
    400,
    'The payment header cannot be read',
    'Nothing was charged. Send one PAYMENT-SIGNATURE header: standard base64 of an x402 version 2 payload, made from the terms in PAYMENT-REQUIRED.',
  ],
  bad_request: [
    400,
    'The request is not valid HTTP',
    'Check the request line, the headers and the length of the body.',
  ],
  invalid_api_key: [
    401,
    'The API key is missing or wrong',
    'Send the store’s key in the X-API-Key header. A key that was revoked or has run out is refused as well: ask the operator for a new one.',
  ],
  not_found: [
    404,
    'There is no such thing here',
    'Check the address and the id. If you send a key, check that it belongs to the store that owns the id.',
  ],
  cross_site: [
    403,
    'The form was sent from another site',
    'Open the payment page and send the form from there.',
  ],
  method_not_allowed: [
    405,
    'This address does not take that method',
    'See the Allow header for the methods it takes.',
  ],
  request_timeout: [
    408,
    'The request took too long to arrive',
    'Send it again, the whole of it within 15 seconds.',
  ],
  idempotency_in_progress: [
    409,
    'A request with this Idempotency-Key is still running',
    'Repeat the same request with the same key after the time in Retry-After.',
  ],
  wallet_required: [
    409,
    'The store has no wallet that can be paid',
    'Register a wallet of a family that this deployment can settle, then create the checkout.',
  ],
  wallet_conflict: [
    409,
    'This address is registered with another custodialType',
    'Retire the registered wallet first, then register the address again.',
  ],
  not_cancelable: [
    409,
    'The checkout can no longer be canceled',
    'Read it to see whether it is paid or expired. An expired one needs nothing more; the money of a paid one can only be sent back from the store’s wallet.',
  ],
  payment_not_open: [
    409,
    'There is nothing to decide about this payment',
    'See detail for the reason. A payment that belongs to another checkout can be accepted for that one only. In the other cases there is nothing left to do.',
  ],
  payment_in_progress: [
    409,
    'A payment for this checkout is being settled',
    'Wait for its outcome, and do not pay again meanwhile. Ask again after the time in Retry-After.',
  ],
  already_paid: [
    409,
    'The checkout is already paid',
    'Payers: this payment was not charged, so discard it; nothing is left to pay. Stores: read the checkout to see which payment completed it, then refund and dismiss this one, or accept it for another checkout.',
  ],
  authorization_used: [
    409,
    'This payment belongs to another checkout',
    'It was not taken here. Sign a new payment for this checkout.',
  ],
  payment_not_applied: [
    409,
    'The payment arrived but did not complete the checkout',
    'The member payment says what became of it. Ask the store; do not pay again.',
  ],
  payment_identifier_reused: [
    409,
    'This payment-identifier was used for another payment',
    'Use a new identifier for a new payment. The same identifier answers only the same payment.',
  ],
  endpoint_exists: [
    409,
    'This address is a webhook endpoint already',
    'Change the endpoint that is there. If its secret is lost, roll it.',
  ],
  endpoint_limit: [
    409,
    'The store has as many webhook endpoints as it may have',
    'Delete one first, or let one endpoint serve several purposes.',
  ],
  endpoint_disabled: [
    409,
    'The webhook endpoint is disabled',
    'Enable it first: PATCH it with status enabled.',
  ],
  log_restarted: [
    409,
    'The event log was restarted after a restore',
    'Go on from the cursor in resumeAfter: send it as after, and keep it in place of yours.',
  ],
  checkout_expired: [
    410,
    'The checkout has expired',
    'Ask the store for a new checkout. Nothing was charged.',
  ],
  checkout_canceled: [
    410,
    'The store canceled the checkout',
    'Ask the store for a new checkout. Nothing was charged.',
  ],
  body_too_large: [
    413,
    'The body is too large',
    'Send a smaller one: the limit is 64 KiB, unless the operator has set another.',
  ],
  unsupported_media_type: [415, 'The body is not declared as JSON', 'Send Content-Type: application/json.'],
  invalid_request: [
    422,
    'The request has values that are not allowed',
    'Correct what each entry of errors names: pointer says where, detail why. Then send it again.',
  ],
  idempotency_key_reused: [
    422,
    'This Idempotency-Key was used for another request',
    'Use a new key for a new request. The same key answers only the same bytes.',
  ],
  currency_unsupported: [
    422,
    'No rate source has this currency',
    'Price the checkout in a currency that GET /api/v1/currencies lists.',
  ],
  rate_limited: [
    429,
    'Too many requests',
    'Wait for the time in Retry-After, then send the same request again.',
  ],
  headers_too_large: [431, 'The headers are too large', 'Send at most 12 KiB of headers.'],
  internal_error: [
    500,
    'Something went wrong on our side',
    'Whether the request took effect is not known, unless detail says so. Repeat it unchanged: a create with the same Idempotency-Key, a payment with the same PAYMENT-SIGNATURE.',
  ],
  unavailable: [
    503,
    'The service cannot answer now',
    'Whether the request took effect is not known, unless detail says so. Repeat it unchanged: a create with the same Idempotency-Key, a payment with the same PAYMENT-SIGNATURE.',
  ],
  rate_unavailable: [
    503,
    'No exchange rate to rely on for this currency',
    'Try again after the time in Retry-After, or price the checkout in USD, which needs no rate.',
  ],
  settlement_unavailable: [
    503,
    'Payments cannot be settled now',
    'Nothing was charged. Repeat the same request with the same payment after the time in Retry-After.',
  ],
} as const satisfies Record<Wire.ProblemCode, readonly [status: number, title: string, advice: string]>

export type ProblemCode = keyof typeof problems

/** One wrong value in a request: where it is (a JSON pointer, or the header's or parameter's name) and why. */
export type Mistake = { readonly pointer: string; readonly code: string; readonly detail: string }

export type ProblemExtras = {
  readonly errors?: readonly Mistake[]
  readonly retryAfterSeconds?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Members added to the problem's JSON. */
  readonly members?: Readonly<Record<string, unknown>>
}

/** A refusal we can explain to the caller. */
export class Problem extends Error {
  override readonly name = 'Problem'
  readonly code: ProblemCode
  readonly extras: ProblemExtras
  constructor(code: ProblemCode, detail: string, extras: ProblemExtras & ErrorOptions = {}) {
    super(detail, extras.cause === undefined ? {} : { cause: extras.cause })
    this.code = code
    this.extras = extras
  }
}

export function invalid(...errors: readonly Mistake[]): Problem {
  return new Problem(
    'invalid_request',
    errors.map((error) => `${error.pointer}: ${error.detail}`).join(' '),
    { errors },
  )
}
