/** The wire contract: what travels between a store, a payer and Farthing, as JSON. The server is checked against it. */

export type CheckoutStatus = 'OPEN' | 'PROCESSING' | 'COMPLETED' | 'EXPIRED' | 'CANCELED'

/** A payment session for one order. */
export type Checkout = {
  id: string
  orderId: string
  /** Decimal amount in `priceCurrency`, exactly as the store sent it. */
  priceAmount: string
  /** ISO 4217 code. */
  priceCurrency: string
  status: CheckoutStatus
  /** ISO 8601 UTC; after it the checkout is no longer payable. */
  expiresAt: string
  /** The hosted payment page, which x402 clients may pay as well. */
  checkoutUrl: string
  createdAt: string
  successRedirectUrl: string | null
}

/** How firmly a payment stands on its chain. */
export type Finality = 'included' | 'safe' | 'finalized'

/** The payment that completed a checkout. */
export type CheckoutPayment = {
  transaction: string
  payer: string
  /** CAIP-2 identifier, for example `eip155:8453`. */
  network: string
  asset: string
  /** Integer amount in the asset's smallest unit. */
  amount: string
  finality: Finality | 'reversed'
}

/** What became of money that arrived. Only `exact` completes a checkout. */
export type Disposition = 'exact' | 'late' | 'underpaid' | 'overpaid' | 'unmatched'

/** A checkout that a payment without one may have been meant for, and what the payment would be to it. */
export type PaymentHint = { checkoutId: string; disposition: Exclude<Disposition, 'exact'> }

/** Money that arrived at a wallet of the store's. */
export type Payment = CheckoutPayment & {
  id: string
  checkoutId: string | null
  payTo: string
  disposition: Disposition
  includedAt: string
  safeAt: string | null
  finalizedAt: string | null
  /** When the store took it for its checkout although it was not what was asked for. */
  acceptedAt: string | null
  /** When the store said that nothing more is to be done about it. */
  dismissedAt: string | null
  /** Somebody named its transaction on the pages of these checkouts. A transaction is public: this proves nothing. */
  hints: PaymentHint[]
}

/** Takes a payment for a checkout. `checkoutId` may be left out where the payment has one. */
export type AcceptPayment = { checkoutId?: string }

/** What the store itself sees of its checkout. */
export type StoreCheckout = Checkout & { payment: CheckoutPayment | null }

export type CreateCheckout = {
  orderId: string
  /** A string such as "12.50", greater than zero, at most 6 decimals. */
  priceAmount: string
  priceCurrency: string
  successRedirectUrl?: string | null
  /** 300 to 604800. Default: 86400, or 3600 where an exchange rate is locked. */
  expiresInSeconds?: number
}

export type StoreMode = 'live' | 'test'

/** From `minAmount` USDC on, a payment completes its checkout only at this finality. */
export type FinalityRule = { minAmount: string; finality: Finality }

export type Store = {
  id: string
  mode: StoreMode
  name: string
  /** A base64 data URL of an image is shown on the payment page; an https address is only kept. */
  logoUrl: string | null
  /** `#rrggbb` in lower case. */
  accentColor: string | null
  finalityPolicy: FinalityRule[]
  createdAt: string
}

export type UpdateStore = {
  name?: string
  logoUrl?: string | null
  accentColor?: string | null
  finalityPolicy?: FinalityRule[]
}

export type WalletFamily = 'EVM' | 'SOLANA'
export type CustodialType = 'CUSTODIAL' | 'NON_CUSTODIAL'

export type RegisterWallet = { walletAddress: string; custodialType: CustodialType }

export type Wallet = {
  id: string
  storeId: string
  family: WalletFamily
  walletAddress: string
  custodialType: CustodialType
  /** Whether this deployment can settle payments to this wallet now. */
  payable: boolean
  /** Why not; null where it is payable. */
  unpayableReason: string | null
  /** Whether new checkouts are paid to this wallet. */
  current: boolean
  createdAt: string
}

export type EventType =
  | 'checkout.created'
  | 'checkout.processing'
  | 'checkout.reopened'
  | 'checkout.completed'
  | 'checkout.expired'
  | 'checkout.canceled'
  | 'payment.late'
  | 'payment.underpaid'
  | 'payment.overpaid'
  | 'payment.unmatched'
  | 'payment.finalized'
  | 'payment.reorged'
  | 'payment.reversed'
  | 'wallet.registered'
  | 'wallet.retired'
  | 'key.created'
  | 'key.revoked'
  | 'webhook_endpoint.disabled'
  | 'webhook_endpoint.undelivered'
  | 'webhook_endpoint.test'

/** An API key as events tell of it: never its secret. */
export type ApiKey = { id: string; createdAt: string; expiresAt: string | null; revokedAt: string | null }

export type EventObject =
  | { checkout: StoreCheckout }
  | { checkout: StoreCheckout | null; payment: Payment }
  | { wallet: Wallet }
  | { key: ApiKey }
  | { webhookEndpoint: WebhookEndpoint }
  | { webhookEndpoint: WebhookEndpoint; eventId: string }

/** One entry of a store's event log. */
export type Event = {
  id: string
  type: EventType
  /** 1, 2, 3 … for each store, without gaps. */
  sequence: number
  createdAt: string
  checkoutId: string | null
  /** Counts the changes of that checkout. */
  checkoutVersion: number | null
  data: EventObject
}

/** A page of a list. `nextCursor` is null on the last page. */
export type Page<Item> = { data: Item[]; nextCursor: string | null }

/** A page of the event log. `cursor` is always there: pass it as `after` to hear what happens next. */
export type EventPage = { data: Event[]; cursor: string; hasMore: boolean }

/** Where a store wants to be told what happened. */
export type WebhookEndpoint = {
  id: string
  url: string
  /** Empty: every type. */
  types: EventType[]
  /** Whether deliveries go one at a time, in the order of the log: a failing one then holds up those behind it. */
  ordered: boolean
  status: 'enabled' | 'disabled'
  /** `store` asked for it; `gone`: the receiver answered 410; `failing`: nothing succeeded for three days. */
  disabledReason: 'store' | 'gone' | 'failing' | null
  failingSince: string | null
  createdAt: string
}

/** With the signing secret, which is shown only when it is made. */
export type WebhookEndpointSecret = WebhookEndpoint & { secret: string }

export type CreateWebhookEndpoint = { url: string; types?: EventType[]; ordered?: boolean }

export type UpdateWebhookEndpoint = {
  url?: string
  types?: EventType[]
  ordered?: boolean
  status?: 'enabled' | 'disabled'
}

/** How long deliveries are signed with the old secret as well; default 86400. */
export type RollSecret = { overlapSeconds?: number }

/** One event on its way to one endpoint. */
export type Delivery = {
  id: string
  endpointId: string
  eventId: string
  eventType: EventType
  sequence: number
  state: 'pending' | 'delivered' | 'undeliverable'
  /** Tries that came to an end since the delivery was last asked for. */
  tries: number
  /** Null once it is delivered or given up. */
  nextTryAt: string | null
  /** Newest first. */
  attempts: DeliveryAttempt[]
}

export type DeliveryAttempt = {
  attempt: number
  startedAt: string
  /** Null for one that was interrupted: whether it arrived is not known. */
  durationMs: number | null
  /** HTTP status; null if no answer came. */
  status: number | null
  /** Why no answer came. */
  error: string | null
  /** The first kilobytes of the answer. */
  answer: string | null
}

/** From which point on to deliver again: a cursor of the event log, or a time. */
export type Redeliver = {
  after?: string
  since?: string
  /** Default `undelivered`: what never arrived, including what happened while the endpoint was disabled. */
  include?: 'undelivered' | 'all'
}

/** Pass `cursor` as `after` again while `hasMore`. */
export type Redelivered = { count: number; cursor: string; hasMore: boolean }

export type Asset = { symbol: string; address: string; decimals: number }

export type Network = {
  name: string
  /** The service's own name of the chain, for example `BASE_MAINNET`. */
  chainId: string
  /** CAIP-2 identifier. */
  network: string
  family: WalletFamily
  mode: StoreMode
  assets: Asset[]
}

/** A currency that checkouts can be priced in now. */
export type Currency = { code: string; name: string; source: string; asOf: string | null }

/** One accepted way to pay, as x402 version 2 writes it. */
export type PaymentRequirements = {
  scheme: 'exact'
  network: string
  asset: string
  /** Integer amount in the asset's smallest unit. */
  amount: string
  payTo: string
  maxTimeoutSeconds: number
  /**
   * What must be signed beside it. On EVM networks the token's EIP-712 domain; on Solana who pays the transaction's fee,
   * and its memo.
   */
  extra: { name: string; version: string } | { feePayer: string; memo: string }
}

/** The 402 answer: body, and base64 in the PAYMENT-REQUIRED header. */
export type PaymentRequired = {
  x402Version: 2
  error?: string
  resource: { url: string; description: string; mimeType: string }
  accepts: PaymentRequirements[]
}

/** An error, RFC 9457. */
export type ProblemDetails = {
  type: string
  title: string
  status: number
  /** What was wrong this time. */
  detail: string
  /** What to do next. */
  advice: string
  /** Stable; programs decide by it. One of `ProblemCode`, or one that was added since. */
  code: string
  requestId: string
  errors?: { pointer: string; code: string; detail: string }[]
}

/** Every code that a problem may have. More are added within v1: expect codes that are not here. */
export type ProblemCode =
  | 'malformed_json'
  | 'malformed_payment'
  | 'bad_request'
  | 'invalid_api_key'
  | 'not_found'
  | 'cross_site'
  | 'method_not_allowed'
  | 'request_timeout'
  | 'idempotency_in_progress'
  | 'wallet_required'
  | 'wallet_conflict'
  | 'not_cancelable'
  | 'payment_not_open'
  | 'payment_in_progress'
  | 'already_paid'
  | 'authorization_used'
  | 'payment_not_applied'
  | 'payment_identifier_reused'
  | 'endpoint_exists'
  | 'endpoint_limit'
  | 'endpoint_disabled'
  | 'log_restarted'
  | 'checkout_expired'
  | 'checkout_canceled'
  | 'body_too_large'
  | 'unsupported_media_type'
  | 'invalid_request'
  | 'idempotency_key_reused'
  | 'currency_unsupported'
  | 'rate_limited'
  | 'headers_too_large'
  | 'internal_error'
  | 'unavailable'
  | 'rate_unavailable'
  | 'settlement_unavailable'

/** What became of a payment on its chain: base64 in the PAYMENT-RESPONSE header. */
export type Settlement = {
  success: boolean
  errorReason?: string
  /** Empty while there is none. */
  transaction: string
  network: string
  payer: string
}
