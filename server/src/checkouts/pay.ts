import type { CheckoutPayment, PaymentRequired } from '@farthing/sdk'
import { networks } from '../chains/networks.ts'
import type { Context } from '../context.ts'
import { isId } from '../ids.ts'
import { Problem } from '../problems.ts'
import type { Checkout, Option } from './checkout.ts'
import { readLivePayment, readPublicCheckout } from './rows.ts'

/** How long a payer's authorization may be good for. It bounds how long one payment can hold a checkout. */
const maxTimeoutSeconds = 300

/** What a request to pay gets. Problems are thrown. */
export type PayAnswer =
  | { readonly kind: 'required'; readonly required: PaymentRequired }
  | { readonly kind: 'paid'; readonly checkout: Checkout; readonly payment: CheckoutPayment }

/**
 * Answers a request to pay. The situations are tried in a fixed order, and the first that fits answers; a 402 invites
 * the payer to sign, so it is only ever given while the checkout is OPEN and within its time.
 */
export async function payCheckout(
  ctx: Context,
  checkoutId: string,
  request: { readonly resourceUrl: string; readonly payment: 'none' | 'unreadable' | 'present' },
): Promise<PayAnswer> {
  const found = isId('ch', checkoutId) ? await readPublicCheckout(ctx.db, checkoutId) : null
  if (!found) throw new Problem('not_found', 'There is no such checkout.')
  const { checkout, isPastExpiry } = found

  if (checkout.status === 'COMPLETED') {
    if (request.payment !== 'none')
      throw new Problem('already_paid', 'The checkout was paid before. This payment was not taken.')
    const payment = await readLivePayment(ctx.db, checkout.id)
    if (payment) return { kind: 'paid', checkout, payment }
    // The payment left the chain between the two reads: its fate is being looked at.
    throw inProgress()
  }
  if (checkout.status === 'PROCESSING') throw inProgress()
  if (checkout.status === 'CANCELED')
    throw new Problem('checkout_canceled', 'The store withdrew this checkout.')
  if (checkout.status === 'EXPIRED' || isPastExpiry) {
    throw new Problem(
      'checkout_expired',
      `This checkout could be paid until ${checkout.expiresAt.toISOString()}.`,
    )
  }

  const required = requirePayment(checkout, request.resourceUrl)
  if (request.payment === 'none') return { kind: 'required', required }
  if (request.payment === 'unreadable') throw new MalformedPayment(required)
  throw new Problem('settlement_unavailable', 'No settler is running. Nothing was charged.', {
    retryAfterSeconds: 30,
  })
}

/** A payment header that cannot be read. It may be sent again in the right form, so the terms go with the refusal. */
export class MalformedPayment extends Problem {
  readonly required: PaymentRequired
  constructor(required: PaymentRequired) {
    super(
      'malformed_payment',
      'PAYMENT-SIGNATURE must be one header: standard base64 of x402 version 2 JSON.',
    )
    this.required = required
  }
}

function inProgress(): Problem {
  return new Problem('payment_in_progress', 'A payment is being settled. Do not pay again.', {
    retryAfterSeconds: 5,
  })
}

function requirePayment(checkout: Checkout, url: string): PaymentRequired {
  return {
    x402Version: 2,
    resource: {
      url,
      description: `Checkout ${checkout.id} for order ${checkout.orderId}`,
      mimeType: 'application/json',
    },
    accepts: checkout.options.flatMap(toRequirements),
  }
}

function toRequirements(option: Option): PaymentRequired['accepts'] {
  const network = networks.find(({ caip2 }) => caip2 === option.network)
  const asset = network?.assets.find(({ address }) => address === option.asset)
  // A token that was taken out of the table after the checkout was made cannot be paid any more.
  if (!asset) return []
  return [
    {
      scheme: 'exact',
      network: option.network,
      asset: option.asset,
      amount: option.amount,
      payTo: option.payTo,
      maxTimeoutSeconds,
      extra: asset.domain,
    },
  ]
}
