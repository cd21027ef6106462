import type { CreateCheckoutVerb } from '../../checkouts/create.ts'
import type { Context } from '../../context.ts'
import { openRails } from '../../payments/rails.ts'
import type { Route } from '../route.ts'
import { checkoutRoutes } from './checkouts.ts'
import { keyRoutes } from './keys.ts'
import { paymentRoutes } from './payments.ts'
import { refundRoutes } from './refunds.ts'
import { storeRoutes } from './store.ts'
import { walletRoutes } from './wallets.ts'

/** The store's API. Every operation acts for the store whose key was sent, and sees nothing of any other. */
export function keyedRoutes(ctx: Context, createCheckout: CreateCheckoutVerb): Route[] {
  const rails = openRails(ctx)
  return [
    ...checkoutRoutes(createCheckout),
    ...paymentRoutes(ctx),
    ...refundRoutes(ctx, rails),
    ...storeRoutes(rails),
    ...walletRoutes(),
    ...keyRoutes(),
  ]
}
