import type { CheckoutPayment, CheckoutStatus, EventType, Checkout as Wire } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { CheckoutId, StoreId } from '../ids.ts'

/**
 * What is owed. Everything but `status` and `version` is fixed at creation.
 *
 * OPEN → PROCESSING → COMPLETED is the way of a payment. A payment that is proven not to have happened leads back to
 * OPEN, or to EXPIRED once the time has passed. COMPLETED is left only if the chain takes the payment back.
 */
export type Checkout = {
  readonly id: CheckoutId
  readonly storeId: StoreId
  readonly orderId: string
  readonly priceAmount: string
  readonly priceCurrency: string
  readonly successRedirectUrl: string | null
  readonly options: readonly Option[]
  readonly finality: 'included' | 'safe' | 'finalized'
  readonly status: CheckoutStatus
  readonly version: number
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** One way to pay, as it was offered: a wallet or a rate that changes later does not move it. */
export type Option = {
  /** CAIP-2. */
  readonly network: string
  readonly asset: string
  /** Units of the asset. A string, because JSON has no such integers. */
  readonly amount: string
  readonly payTo: string
}

/** Every change of status there is, and the event it leaves. */
export const arrows: { readonly [From in CheckoutStatus]: { readonly [To in CheckoutStatus]?: EventType } } =
  {
    OPEN: {
      PROCESSING: 'checkout.processing',
      COMPLETED: 'checkout.completed',
      EXPIRED: 'checkout.expired',
      CANCELED: 'checkout.canceled',
    },
    PROCESSING: { OPEN: 'checkout.reopened', COMPLETED: 'checkout.completed', EXPIRED: 'checkout.expired' },
    COMPLETED: { PROCESSING: 'checkout.processing' },
    EXPIRED: { COMPLETED: 'checkout.completed' },
    CANCELED: { COMPLETED: 'checkout.completed' },
  }

/** What anyone who knows its id may see: the interface's Checkout, field for field. */
export function toWire(ctx: Context, checkout: Checkout): Wire {
  return {
    id: checkout.id,
    orderId: checkout.orderId,
    priceAmount: checkout.priceAmount,
    priceCurrency: checkout.priceCurrency,
    status: checkout.status,
    expiresAt: checkout.expiresAt.toISOString(),
    checkoutUrl: `${ctx.config.checkoutPageUrl}/${checkout.id}`,
    createdAt: checkout.createdAt.toISOString(),
    successRedirectUrl: checkout.successRedirectUrl,
  }
}

/** What its store sees: the same, and the payment. */
export function toStoreWire(ctx: Context, checkout: Checkout, payment: CheckoutPayment | null) {
  return { ...toWire(ctx, checkout), payment }
}
