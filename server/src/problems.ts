import type * as Wire from '@farthing/sdk'

/**
 * Every error we can explain: each code with its status, a title, and advice on what to do next. A Problem becomes
 * RFC 9457 JSON in http/problem.ts. Anything else that is thrown is a bug and a 500.
 */
export const problems = {
  malformed_json: [
    400,
    'The request body is not valid JSON',
    'Send one JSON object in UTF-8, without duplicate keys and nested at most 8 levels deep.',
  ],
  malformed_payment: [
    400,
    'The payment header cannot be parsed',
    'Nothing was charged. Send exactly one PAYMENT-SIGNATURE header: standard base64 of an x402 version 2 payload, built from the terms in PAYMENT-REQUIRED.',
  ],
  bad_request: [
    400,
    'The request is not valid HTTP',
    'Check the request line, the headers and the length of the body.',
  ],
  invalid_api_key: [
    401,
    'The API key is missing or invalid',
    'Send the store’s key in the X-API-Key header. Revoked and expired keys are rejected too; ask the operator for a new one.',
  ],
  scope_required: [
    403,
    'The key may not do this',
    'Use a key that has this scope, or ask the person who manages the store’s keys for one.',
  ],
  address_not_allowed: [
    403,
    'The key may not be used from this address',
    'Send the request from an address on the key’s list, or make a key with another list.',
  ],
  key_too_wide: [
    403,
    'A key cannot make, rotate or revoke a key that may do more than itself',
    'Ask for fewer scopes or fewer addresses, or use a wider key.',
  ],
  store_inactive: [
    403,
    'The store may not create checkouts',
    'See detail: the operator has to approve the store, the store has to prove its wallet, or the operator has suspended it. Checkouts that exist can still be paid, read and canceled.',
  ],
  not_found: [
    404,
    'Not found',
    'Check the URL and the id. If you send an API key, check that it belongs to the store that owns the id.',
  ],
  wrong_cell: [
    421,
    'The id or key belongs to another cell',
    'Send the request to the deployment’s public URL: its proxy finds the cell by the two characters after the prefix. If you did, tell the operator that the proxy sends this cell’s requests elsewhere.',
  ],
  cross_site: [
    403,
    'The form was submitted from another site',
    'Open the page that the form belongs to, and submit it there.',
  ],
  method_not_allowed: [405, 'Method not allowed', 'Use one of the methods in the Allow header.'],
  request_timeout: [
    408,
    'The request took too long to arrive',
    'Send it again: the headers must arrive within 5 seconds, the whole request within 15.',
  ],
  idempotency_in_progress: [
    409,
    'A request with this Idempotency-Key is still running',
    'Wait as long as Retry-After says, then repeat the same request with the same key.',
  ],
  wallet_required: [
    409,
    'The store has no wallet that can be paid',
    'Register a wallet that this deployment can settle payments to, then create the checkout again.',
  ],
  key_limit: [409, 'The store has too many keys', 'Revoke keys that are not used.'],
  wallet_conflict: [
    409,
    'This address is already registered with a different custodialType',
    'Retire the registered wallet, then register the address again.',
  ],
  wallet_elsewhere: [
    409,
    'The wallet is in use in another cell',
    'Use another wallet, or the store that already has this one. To move the wallet here, retire it there; it is free about a day after its last payment is final.',
  ],
  wallet_unproven: [
    409,
    'It is not proven whose wallet received this payment',
    'Prove the wallet: get a challenge for it, sign that with the wallet and present the signature. Then repeat the request.',
  ],
  not_cancelable: [
    409,
    'The checkout can no longer be canceled',
    'Read the checkout to see whether it is paid or expired. An expired checkout needs no further action; a paid one can only be refunded from the store’s own wallet.',
  ],
  not_simulated: [
    409,
    'Nothing can be simulated for this checkout',
    'Only a test store’s checkouts can be paid on the simulated network, and only if the deployment has SIMULATED in NETWORKS. Use a test store’s key, and create the checkout again if the network was turned on since.',
  ],
  payment_not_open: [
    409,
    'That decision is not possible for this payment',
    'See detail for the reason. A payment that belongs to another checkout can be accepted only for that checkout. In all other cases there is nothing left to decide.',
  ],
  payment_not_final: [
    409,
    'The payment is not final yet',
    'Repeat the request after the delay in Retry-After: until the chain can no longer take the payment back, a refund could return money that the store never got.',
  ],
  payment_refunded: [
    409,
    'The payment is being refunded, or was',
    'It can no longer pay a checkout. If it should pay one, cancel the refund first.',
  ],
  refund_exceeds_payment: [
    409,
    'Less than that is left of the payment',
    'See detail for the remainder. Refunds that are on their way count, and so do canceled ones until a signature for them would have expired.',
  ],
  refund_in_progress: [
    409,
    'The refund is on its way',
    'Read the refund to see its status. It can no longer be signed again or canceled.',
  ],
  refund_canceled: [
    409,
    'The refund was canceled or has failed',
    'Create another refund if the money should go back.',
  ],
  refund_slots_used: [
    409,
    'The payment has had as many signed refunds as it can have',
    'Send the rest yourself with a refund whose way is self-sent.',
  ],
  address_request_closed: [
    409,
    'The refund takes no address request, or no confirmation',
    'See detail for the reason. A refund needs a link only while it is REQUESTED and has no recipient, and an address can be confirmed once the buyer has named it.',
  ],
  recipient_needs_member: [
    403,
    'A key cannot choose who receives a refund',
    'Leave out the recipient: the money goes back to the payer. To send it elsewhere, a member of the store names or confirms the address in the console.',
  ],
  invoice_number_taken: [
    409,
    'The store has another invoice with this number',
    'Use the next number. To repeat a request that may have taken effect, send it with the same Idempotency-Key.',
  ],
  payment_in_progress: [
    409,
    'A payment for this checkout is being settled',
    'Wait for its outcome and do not pay again in the meantime. Repeat the request after the delay in Retry-After.',
  ],
  already_paid: [
    409,
    'The checkout is already paid',
    'Payers: this payment was not charged. Discard it; there is nothing left to pay. Stores: read the checkout to see which payment completed it, then either refund and dismiss this one, or accept it for another checkout.',
  ],
  authorization_used: [
    409,
    'This payment was already used',
    'It does not count for this checkout. If detail tells you to ask the store, do that before you pay again. Otherwise sign a new payment for this checkout.',
  ],
  payment_not_applied: [
    409,
    'The payment arrived but did not complete the checkout',
    'Do not pay again. The payment field says what became of the money; ask the store about it.',
  ],
  payment_identifier_reused: [
    409,
    'This payment-identifier was already used for another payment',
    'Use a new identifier for each payment. A repeated identifier is accepted only with the same payment.',
  ],
  endpoint_exists: [
    409,
    'A webhook endpoint with this URL already exists',
    'Change the existing endpoint instead. If its secret is lost, roll it.',
  ],
  endpoint_limit: [
    409,
    'The store has reached its limit of webhook endpoints',
    'Delete an endpoint first, or use one endpoint for several purposes.',
  ],
  endpoint_disabled: [
    409,
    'The webhook endpoint is disabled',
    'Enable it first: PATCH it with status enabled.',
  ],
  log_restarted: [
    409,
    'The event log was restarted after a restore',
    'Continue from the cursor in resumeAfter: send it as after, and store it in place of your old cursor.',
  ],
  log_truncated: [
    410,
    'Events of that age were deleted',
    'Read the checkouts that you still wait for, then continue from firstSequence: its cursor is in detail.',
  ],
  checkout_expired: [
    410,
    'The checkout has expired',
    'Nothing was charged. Ask the store for a new checkout.',
  ],
  checkout_canceled: [
    410,
    'The store canceled the checkout',
    'Nothing was charged. Ask the store for a new checkout.',
  ],
  link_closed: [410, 'The store closed the link', 'Nothing was charged. Ask the store for a new link.'],
  link_ended: [
    410,
    'The time in which the link could be paid is over',
    'Nothing was charged. Ask the store for a new link, or for more time.',
  ],
  body_too_large: [
    413,
    'The request body is too large',
    'Send a smaller body. The API accepts 64 KiB unless the operator has set another limit; the forms of the payment page accept 1 KiB.',
  ],
  unsupported_media_type: [
    415,
    'Unsupported Content-Type',
    'Send application/json to the API, and application/x-www-form-urlencoded to the forms of the payment page.',
  ],
  invalid_request: [
    422,
    'The request contains invalid values',
    'Fix every entry in errors: pointer says where the value is, detail what is wrong with it. Then send the request again.',
  ],
  idempotency_key_reused: [
    422,
    'This Idempotency-Key was already used for another request',
    'Use a new key for each new request. A repeated key is accepted only with exactly the same body.',
  ],
  currency_unsupported: [
    422,
    'No exchange rate source covers this currency',
    'Price the checkout in a currency that GET /api/v1/currencies lists.',
  ],
  rate_limited: [
    429,
    'Too many requests',
    'Wait as long as Retry-After says, then send the same request again.',
  ],
  headers_too_large: [431, 'The request headers are too large', 'Send at most 12 KiB of headers.'],
  internal_error: [
    500,
    'Something went wrong on our side',
    'The request may or may not have taken effect, unless detail says which. Repeat it unchanged: a create with the same Idempotency-Key, a payment with the same PAYMENT-SIGNATURE.',
  ],
  unavailable: [
    503,
    'The service is temporarily unavailable',
    'The request may or may not have taken effect, unless detail says which. Repeat it unchanged: a create with the same Idempotency-Key, a payment with the same PAYMENT-SIGNATURE.',
  ],
  rate_unavailable: [
    503,
    'There is no reliable exchange rate for this currency right now',
    'Nothing was created. Try again after the delay in Retry-After, or price the checkout in USD, which needs no rate.',
  ],
  settlement_unavailable: [
    503,
    'Payments cannot be settled right now',
    'Nothing was charged. Repeat the same request with the same payment after the delay in Retry-After.',
  ],
  /** The proxy in front of several cells answers this (ops/haproxy), never a cell. */
  cell_unavailable: [
    503,
    'The cell that this belongs to cannot be reached',
    'Wait as long as Retry-After says, then send the same request again.',
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

/** Decided by the tag alone, before any look-up. */
export function wrongCell(what: string, theirs: string, ours: string): Problem {
  return new Problem(
    'wrong_cell',
    `${what} belongs to cell ${theirs}, and this is cell ${ours}. Nothing was looked up or changed.`,
  )
}

export function invalid(...errors: readonly Mistake[]): Problem {
  return new Problem(
    'invalid_request',
    errors.map((error) => `${error.pointer}: ${error.detail}`).join(' '),
    { errors },
  )
}
