import type { PaymentRequired, Payment as WirePayment } from '@farthing/sdk'
import { inFlightMax } from '../payments/rows.ts'
import { nextDay, whyRestoring } from '../payments/settlers/readiness.ts'
import { Problem } from '../problems.ts'
import type { Checkout } from './checkout.ts'

/** Refusals of requests to pay, other than a 402. Each says whether the payer was charged or should repeat the request. */

/** Within this time, blocks have settled many of a wallet's payments in flight. */
const inFlightRetrySeconds = 10

export function unsettled(detail: string, cause?: unknown): Problem {
  return new Problem('settlement_unavailable', `${detail} Nothing was charged.`, {
    retryAfterSeconds: 5,
    cause,
  })
}

/** The refusal of a payment to a store whose settlements have cost too much today. */
export function overQuota(now: Date): Problem {
  const reset = nextDay(now)
  return new Problem(
    'settlement_unavailable',
    `This store’s payments have used up their allowance of network fees for today. It is renewed at ${reset.toISOString()}. Nothing was charged.`,
    { retryAfterSeconds: secondsUntil(reset, now) },
  )
}

/** The refusal of a contract wallet with a payment that failed on the chain. */
export function resting(until: Date, now: Date): Problem {
  return new Problem(
    'rate_limited',
    `A payment of this contract wallet failed on the chain, so it can pay by signature again only from ${until.toISOString()}. It can still pay by sending the money itself. Nothing was charged.`,
    { retryAfterSeconds: secondsUntil(until, now) },
  )
}

/** The refusal of a wallet with too many payments in progress. */
export function tooManyInFlight(): Problem {
  return new Problem(
    'rate_limited',
    `This wallet has more than ${inFlightMax} payments in progress. Nothing was charged. Repeat the same request with the same payment.`,
    { retryAfterSeconds: inFlightRetrySeconds },
  )
}

function secondsUntil(time: Date, now: Date): number {
  return Math.max(1, Math.ceil((time.getTime() - now.getTime()) / 1_000))
}

/**
 * The refusal of a payment header that can't be parsed. It includes the terms, so that the payer can send the header
 * again in the right form.
 */
export class MalformedPayment extends Problem {
  readonly required: PaymentRequired
  constructor(required: PaymentRequired, why: string) {
    super('malformed_payment', `The PAYMENT-SIGNATURE header cannot be parsed: ${why}.`)
    this.required = required
  }
}

export function notApplied(payment: WirePayment): Problem {
  return new Problem('payment_not_applied', `The payment was recorded as ${payment.disposition}.`, {
    members: { payment },
  })
}

/** The refusal of payments while a restored database is being compared with the chains. */
export function restoringProblem(): Problem {
  return unsettled(whyRestoring)
}

/** The refusal of a payment for a checkout that cannot be paid. */
export function closedProblem({ status, expiresAt }: Checkout): Problem {
  switch (status) {
    case 'COMPLETED':
      return new Problem('already_paid', 'The checkout is already paid. This payment was not charged.')
    case 'PROCESSING':
      return inProgress()
    case 'CANCELED':
      return new Problem('checkout_canceled', 'The store canceled this checkout.')
    case 'OPEN':
    case 'EXPIRED':
      return new Problem('checkout_expired', `This checkout expired at ${expiresAt.toISOString()}.`)
  }
}

export function inProgress(): Problem {
  return new Problem('payment_in_progress', 'A payment is being settled. Do not pay again.', {
    retryAfterSeconds: 5,
  })
}
