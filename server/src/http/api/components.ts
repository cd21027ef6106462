import { Checkout, CreateCheckout, StoreCheckout } from './checkouts.ts'
import { Event } from './events.ts'
import { ApiKey, ApiKeySecret, CreateApiKey, RotateApiKey } from './keys.ts'
import { Currency, Network } from './networks.ts'
import { TermsSchema } from './pay.ts'
import { CheckoutPayment, Payment, PaymentHint } from './payments.ts'
import { CreateRefund, NameTransaction, PreparedRefund, PresentRefund, Refund } from './refunds.ts'
import { Actor, ProblemDetails } from './shapes.ts'
import { FinalityRule, Store, UpdateStore } from './store.ts'
import { ProveWallet, RegisterWallet, UpdateWallet, Wallet, WalletChallenge } from './wallets.ts'
import {
  CreateWebhookEndpoint,
  Delivery,
  DeliveryAttempt,
  Redeliver,
  Redelivered,
  UpdateWebhookEndpoint,
  WebhookEndpoint,
} from './webhooks.ts'

/** Schemas that the OpenAPI document lists by name. */
export const components = {
  Checkout,
  CheckoutPayment,
  PaymentHint,
  Payment,
  StoreCheckout,
  CreateCheckout,
  Refund,
  CreateRefund,
  PreparedRefund,
  PresentRefund,
  NameTransaction,
  FinalityRule,
  Store,
  UpdateStore,
  RegisterWallet,
  UpdateWallet,
  WalletChallenge,
  ProveWallet,
  Wallet,
  ApiKey,
  ApiKeySecret,
  CreateApiKey,
  RotateApiKey,
  Network,
  Currency,
  PaymentRequired: TermsSchema,
  ProblemDetails,
}

/** The same for the event log and webhooks. */
export const eventComponents = {
  Event,
  Actor,
  WebhookEndpoint,
  CreateWebhookEndpoint,
  UpdateWebhookEndpoint,
  Delivery,
  DeliveryAttempt,
  Redeliver,
  Redelivered,
}
