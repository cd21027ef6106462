/** The JSON exchanged between stores, payers and Farthing. The server's schemas are checked against these types. */
import type { Link } from './links.ts'
import type { Refund } from './refunds.ts'

export type * from './links.ts'
export type * from './refunds.ts'

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
  /** ISO 8601, UTC. The checkout cannot be paid after this time. */
  expiresAt: string
  /** The hosted payment page. x402 clients pay at the same URL. */
  checkoutUrl: string
  createdAt: string
  successRedirectUrl: string | null
  /** Where a buyer can go back to without paying. Absent if none was given. */
  cancelUrl?: string
}

/** How final a payment is on its chain. */
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

/** How a payment relates to its checkout. Only `exact` completes the checkout by itself. */
export type Disposition = 'exact' | 'late' | 'underpaid' | 'overpaid' | 'unmatched'

/** A checkout that an unmatched payment may have been meant for, and the disposition it would have there. */
export type PaymentHint = { checkoutId: string; disposition: Exclude<Disposition, 'exact'> }

/** Money that arrived at one of the store's wallets. */
export type Payment = CheckoutPayment & {
  id: string
  checkoutId: string | null
  payTo: string
  disposition: Disposition
  includedAt: string
  safeAt: string | null
  finalizedAt: string | null
  /** When the store accepted it for its checkout although it did not match. */
  acceptedAt: string | null
  /** When the store dismissed it: it needs no further decision. */
  dismissedAt: string | null
  /** Checkouts on whose pages someone entered its transaction. Transactions are public, so this proves nothing. */
  hints: PaymentHint[]
  /** The store's note about it. Absent if there is none. */
  note?: PaymentNote
  /**
   * The amount that completed refunds have returned. Present only if the payment is read by its id and has had refunds.
   */
  refundedAmount?: string
  /** The amount that can still be refunded, less refunds in progress. Present when `refundedAmount` is. */
  refundable?: string
  /** The buyer's receipt. Present only if the payment is read by its id and has completed its checkout. */
  receipt?: BuyerReceipt
}

export type MovementType =
  | 'payment'
  | 'payment_reversed'
  | 'payment_ceded'
  | 'acceptance'
  | 'dismissal'
  | 'refund'
  | 'refund_reversed'
  | 'refund_declared'

/** A line of the store's books: something that happened to its money, written when it is final and never changed. */
export type Movement = {
  /** Begins with mov_. */
  id: string
  /** 1, 2, 3 … without gaps in each store. */
  number: number
  type: MovementType
  /** When its block came, or when somebody decided. */
  happenedAt: string
  /** When it was final and written: this decides which month it belongs to. */
  bookedAt: string
  /** CAIP-2 identifier. */
  network: string
  asset: string
  /** In the asset's smallest unit; negative if it went away, 0 for decisions. */
  amount: string
  /** The store's wallet whose balance it changed; null if it changed none that Farthing sees. */
  wallet: string | null
  transaction: string | null
  logIndex: number | null
  paymentId: string
  refundId: string | null
  checkoutId: string | null
  orderId: string | null
  disposition: Disposition | null
  priceAmount: string | null
  priceCurrency: string | null
  /** What one unit of the price's currency was worth in dollars when the checkout was made; null for dollars. */
  rate: string | null
  rateSource: string | null
  rateTime: string | null
  /** In the currency that the store reported in then; null if there was no reliable rate. */
  value: string | null
  valueCurrency: string
  /** What one token was worth; null if the value is the price. */
  valueRate: string | null
  /** `price`, `par` (a token counts as a dollar), or the source of the rate. */
  valueRateSource: string | null
  valueRateTime: string | null
  /** The number of the line that this one takes back. */
  reverses: number | null
  /** Who decided. */
  decidedBy: { type: string; id: string } | null
  /** What the payment's records say today. Only if asked for; it changes, unlike the line. */
  details?: MovementDetails
}

export type MovementDetails = {
  payer: string | null
  recipient: string | null
  description: string | null
  note: string | null
}

/** Oldest first. */
export type MovementPage = Page<Movement> & {
  /** Whether the period is over, so that no further line can come. */
  isClosed: boolean
}

/** The buyer's receipt of a payment, with the seller's data as they were when it was made. */
export type BuyerReceipt = {
  /** As 2026-000017: consecutive per store and year. After a restore another series begins: 2026-TPDKQ4-000001. */
  number: string
  /** The day in the store's time zone, as 2026-11-19. */
  issuedOn: string
  /** When the chain had taken the payment back for good; null while the receipt is valid. */
  voidAt: string | null
  legalName: string | null
  legalAddress: string | null
  taxId: string | null
}

/** A note on a payment, seen by the store alone, and who wrote it. */
export type PaymentNote = { text: string; actor: Actor; notedAt: string }

/** Null or no text removes the note. */
export type NotePayment = { note: string | null }

/** Why a payment is dismissed. Without `note`, an existing note stays. */
export type DismissPayment = { note?: string }

/** Which checkout to accept a payment for. Omit `checkoutId` if the payment already names its checkout. */
export type AcceptPayment = { checkoutId?: string }

/** How a price was converted when its checkout was created. */
export type Rate = {
  /** US dollars for one unit of `priceCurrency`. Amounts are computed from the source's exact figures, then rounded up. */
  rate: string
  source: string
  time: string
}

/** A checkout as its store sees it. `linkId`, `description`, `metadata` and `rate` are absent if there are none. */
export type StoreCheckout = Checkout & {
  payment: CheckoutPayment | null
  /** The link that it was made for. */
  linkId?: string
  description?: string
  metadata?: Record<string, string>
  rate?: Rate
  /** The amount that completed refunds have returned, in the asset's smallest unit. Absent if there are no refunds. */
  refundedAmount?: string
  /** Oldest first. Absent if there are none. */
  refunds?: Refund[]
}

export type CreateCheckout = {
  orderId: string
  /** A string such as "12.50": greater than zero, with at most 6 decimals. */
  priceAmount: string
  /** ISO 4217 code, in upper or lower case. The checkout has it in upper case. */
  priceCurrency: string
  successRedirectUrl?: string | null
  /** The payment page links to it while the checkout is open, expired or canceled. */
  cancelUrl?: string | null
  /** 300 (for a test store 1) to 604800. Default: 86400, or 3600 if an exchange rate is locked. */
  expiresInSeconds?: number
  /** What is paid for, in plain text of up to 500 bytes. The buyer sees it on the payment page. */
  description?: string | null
  /** Up to 20 of the store's own values of up to 500 characters. The buyer never sees them. */
  metadata?: Record<string, string>
}

export type StoreMode = 'live' | 'test'

/** A payment of `minAmount` USDC or more completes its checkout only once it has reached this finality. */
export type FinalityRule = { minAmount: string; finality: Finality }

/** The cost of the store's settlements today (UTC) on one network. Beyond `perDay` its payments get 503. */
export type GasQuota = {
  /** CAIP-2 identifier. */
  network: string
  /** The network's native currency, in which the amounts are. */
  currency: string
  spent: string
  perDay: string
  resetsAt: string
}

export type Store = {
  id: string
  mode: StoreMode
  name: string
  /** A base64 data URL of an image is shown on the payment page. An https URL is only stored. */
  logoUrl: string | null
  /** `#rrggbb` in lower case. */
  accentColor: string | null
  /** How buyers reach the store; shown on its payment pages. */
  supportEmail: string | null
  supportUrl: string | null
  /** The seller's name, postal address (up to six lines) and tax number, for receipts. */
  legalName: string | null
  legalAddress: string | null
  taxId: string | null
  finalityPolicy: FinalityRule[]
  /**
   * Who can change the wallet that new checkouts are paid to: a key alone, or an owner who confirms a key's request.
   * Owners set this in the console.
   */
  walletChanges: WalletChanges
  /**
   * The most that each manager may refund within 24 hours, in whole tokens; 0: only owners refund. Owners set it in the
   * console.
   */
  managerRefundLimit: string
  /** The IANA name of the time zone in which the store's days begin and end. */
  timeZone: string
  /** ISO 4217: the currency in which takings are summed up. */
  reportCurrency: string
  standing: StoreStanding
  /** The operator's message to the store's owners about its suspension; null unless it is suspended. */
  suspendedReason: string | null
  createdAt: string
  /** One per network with a limit; absent if there is none. */
  gas?: GasQuota[]
}

export type WalletChanges = 'key' | 'member'

/**
 * Whether the store may create checkouts: only if `approved`. `waiting`: the operator has to approve it first.
 * `unproven`: it has to prove a wallet first. Everything else works in each of them.
 */
export type StoreStanding = 'waiting' | 'unproven' | 'approved' | 'suspended'

export type UpdateStore = {
  name?: string
  logoUrl?: string | null
  accentColor?: string | null
  supportEmail?: string | null
  supportUrl?: string | null
  legalName?: string | null
  legalAddress?: string | null
  taxId?: string | null
  finalityPolicy?: FinalityRule[]
  timeZone?: string
  reportCurrency?: string
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
  /** Why it is not payable; null if it is. */
  unpayableReason: string | null
  /** Whether new checkouts use this wallet. */
  current: boolean
  /**
   * Whether an owner of the store still has to confirm a change: to use this wallet, or to retire it if it is current.
   */
  confirmationRequired: boolean
  /**
   * Whether the holder has to prove the wallet before it is used, because it is new to a cell that shares a directory.
   */
  proofRequired: boolean
  /** When the wallet's holder proved by a signature that it belongs to this store; null if not proven. */
  provenAt: string | null
  /** Whether, as the store says, the wallet also receives money outside this deployment. */
  sharedElsewhere: boolean
  createdAt: string
}

export type UpdateWallet = { sharedElsewhere: boolean }

/** The message that the wallet has to sign, with `personal_sign` (EVM) or `signMessage` (Solana). */
export type WalletChallenge = { walletId: string; message: string; expiresAt: string }

/** In hex (EVM) or base58 (Solana). A contract wallet may sign by ERC-1271, also wrapped by ERC-6492. */
export type ProveWallet = { signature: string }

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
  | 'payment.accepted'
  | 'payment.dismissed'
  | 'payment.noted'
  | 'refund.requested'
  | 'refund.address_updated'
  | 'refund.declared'
  | 'refund.completed'
  | 'refund.finalized'
  | 'refund.reorged'
  | 'refund.failed'
  | 'refund.canceled'
  | 'link.created'
  | 'link.updated'
  | 'link.closed'
  | 'link.paid'
  | 'link.reopened'
  | 'store.updated'
  | 'store.approved'
  | 'store.suspended'
  | 'store.resumed'
  | 'wallet.registered'
  | 'wallet.updated'
  | 'wallet.retired'
  | 'wallet.confirmed'
  | 'wallet.refused'
  | 'wallet.undone'
  | 'key.created'
  | 'key.revoked'
  | 'member.invited'
  | 'member.joined'
  | 'member.recovered'
  | 'member.removed'
  | 'member.role_changed'
  | 'member.operator_added'
  | 'member.operator_removed'
  | 'member.codes_made'
  | 'member.code_used'
  | 'member.passkey_added'
  | 'member.passkey_removed'
  | 'member.identity_added'
  | 'member.identity_removed'
  | 'member.email_changed'
  | 'member.signed_in'
  | 'member.session_moved'
  | 'webhook_endpoint.created'
  | 'webhook_endpoint.updated'
  | 'webhook_endpoint.deleted'
  | 'webhook_endpoint.disabled'
  | 'webhook_endpoint.undelivered'
  | 'webhook_endpoint.test'

/** What a key can be allowed to do: `keys:write` includes `keys:read`, and so on for each. */
export type Scope =
  | 'checkouts:read'
  | 'checkouts:write'
  | 'payments:read'
  | 'payments:write'
  | 'refunds:read'
  | 'refunds:write'
  | 'wallets:read'
  | 'wallets:write'
  | 'webhooks:read'
  | 'webhooks:write'
  | 'reports:read'
  | 'reports:write'
  | 'keys:read'
  | 'keys:write'

/** Names for lists of scopes: everything, creating and reading checkouts, or reading. */
export type KeyPreset = 'full' | 'create' | 'read'

/** An API key, without its secret. */
export type ApiKey = {
  id: string
  /** What the store calls it; null if it has no name. */
  label: string | null
  scopes: Scope[]
  /** The addresses or blocks (CIDR) it may be used from; empty means any. */
  addresses: string[]
  createdAt: string
  /** To the hour; null if it has not been used yet. */
  lastUsedAt: string | null
  expiresAt: string | null
  revokedAt: string | null
}

/** A key with its secret, which is shown only when it is created. */
export type ApiKeySecret = ApiKey & { key: string }

/** Either a preset or a list of scopes; `full` if both are left out. */
export type CreateApiKey = {
  label?: string
  preset?: KeyPreset
  scopes?: Scope[]
  addresses?: string[]
}

/** How long the old key stays valid. Default 86400. */
export type RotateApiKey = { overlapSeconds?: number }

/** Who caused a change: a key, a member, an operator at the command line, or Farthing itself. */
export type Actor = {
  type: 'key' | 'member' | 'operator' | 'system'
  id: string
  /** The key's label, the member's or the operator's name. */
  name: string | null
}

/** A person or program that acts for the store, as it appears in events. */
export type Member = { id: string; name: string; role: 'owner' | 'manager' | 'developer' | 'viewer' }

/** The types that begin with this word. */
type TypesOf<Noun extends string> = Extract<EventType, `${Noun}.${string}`>

type EventOf<Type extends EventType, Data> = {
  id: string
  type: Type
  /** 1, 2, 3 … per store, without gaps. */
  sequence: number
  createdAt: string
  checkoutId: string | null
  /** Increases with every change of that checkout. */
  checkoutVersion: number | null
  /** Who caused it; null if a payer, the chain or time did. */
  actor: Actor | null
  /** The object that changed, as it was right after the change. */
  data: Data
}

/** One entry of a store's event log. Its `type` says what is in `data`. */
export type Event =
  | EventOf<TypesOf<'checkout'>, { checkout: StoreCheckout }>
  | EventOf<TypesOf<'payment'>, { checkout: StoreCheckout | null; payment: Payment }>
  | EventOf<TypesOf<'refund'>, { refund: Refund }>
  | EventOf<TypesOf<'link'>, { link: Link }>
  | EventOf<TypesOf<'wallet'>, { wallet: Wallet }>
  | EventOf<TypesOf<'key'>, { key: ApiKey }>
  | EventOf<TypesOf<'store'>, { store: Store }>
  | EventOf<TypesOf<'member'>, { member: Member }>
  | EventOf<
      Exclude<TypesOf<'webhook_endpoint'>, 'webhook_endpoint.undelivered'>,
      { webhookEndpoint: WebhookEndpoint }
    >
  | EventOf<'webhook_endpoint.undelivered', { webhookEndpoint: WebhookEndpoint; eventId: string }>

/** A page of a list. `nextCursor` is null on the last page. */
export type Page<Item> = { data: Item[]; nextCursor: string | null }

/** A page of the event log. `cursor` is always set: pass it as `after` to read what happens next. */
export type EventPage = { data: Event[]; cursor: string; hasMore: boolean }

/**
 * `json`: the event as the log has it, signed. `slack` and `discord`: a line of text, in the form that these services
 * take; the endpoint's URL is a secret then, and is shown masked.
 */
export type WebhookFormat = 'json' | 'slack' | 'discord'

/** A URL that a store's events are delivered to. */
export type WebhookEndpoint = {
  id: string
  url: string
  format: WebhookFormat
  /** Empty means every type. */
  types: EventType[]
  /** Whether events are delivered one at a time, in log order. A failing delivery then holds up those behind it. */
  ordered: boolean
  status: 'enabled' | 'disabled'
  /** `store`: the store disabled it; `gone`: the receiver answered 410; `failing`: no success for three days. */
  disabledReason: 'store' | 'gone' | 'failing' | null
  failingSince: string | null
  createdAt: string
}

/**
 * A webhook endpoint with its signing secret, which is shown only when it is created. It is empty for `slack` and
 * `discord`, where nothing is signed.
 */
export type WebhookEndpointSecret = WebhookEndpoint & { secret: string }

export type CreateWebhookEndpoint = {
  url: string
  /** Default: json. It cannot be changed later. */
  format?: WebhookFormat
  types?: EventType[]
  ordered?: boolean
}

export type UpdateWebhookEndpoint = {
  url?: string
  types?: EventType[]
  ordered?: boolean
  status?: 'enabled' | 'disabled'
}

/** How long deliveries are also signed with the old secret. Default 86400. */
export type RollSecret = { overlapSeconds?: number }

/** The delivery of one event to one endpoint. */
export type Delivery = {
  id: string
  endpointId: string
  eventId: string
  eventType: EventType
  sequence: number
  state: 'pending' | 'delivered' | 'undeliverable'
  /** Finished attempts since the delivery was last requested. */
  tries: number
  /** Null once it is delivered or abandoned. */
  nextTryAt: string | null
  /** Newest first. */
  attempts: DeliveryAttempt[]
}

export type DeliveryAttempt = {
  attempt: number
  startedAt: string
  /** Null if the attempt was interrupted: it may or may not have arrived. */
  durationMs: number | null
  /** HTTP status; null if no answer came. */
  status: number | null
  /** Why no answer came. */
  error: string | null
  /** The first kilobytes of the receiver's answer. */
  answer: string | null
}

/** Where to start delivering again: a cursor of the event log, or a time. */
export type Redeliver = {
  after?: string
  since?: string
  /** Default `undelivered`: events that never arrived, including those from while the endpoint was disabled. */
  include?: 'undelivered' | 'all'
}

/** While `hasMore`, call again with `cursor` as `after`. */
export type Redelivered = { count: number; cursor: string; hasMore: boolean }

export type Asset = { symbol: string; address: string; decimals: number }

export type Network = {
  name: string
  /** Farthing's name for the chain, for example `BASE_MAINNET`. */
  chainId: string
  /** CAIP-2 identifier. */
  network: string
  /** `SIMULATED`: a chain for test stores, on which you choose what happens. Nobody has a wallet there. */
  family: WalletFamily | 'SIMULATED'
  mode: StoreMode
  assets: Asset[]
}

/** A currency that checkouts can currently be priced in. */
export type Currency = { code: string; name: string; source: string; asOf: string | null }

/** One accepted way to pay, as defined by x402 version 2. */
export type PaymentRequirements = {
  scheme: 'exact'
  network: string
  asset: string
  /** Integer amount in the asset's smallest unit. */
  amount: string
  payTo: string
  maxTimeoutSeconds: number
  /**
   * What else the signature must cover: on EVM networks the token's EIP-712 domain; on Solana the transaction's fee
   * payer and memo.
   */
  /** Present if a link is paid: a payment has to carry the same `quote`. */
  extra:
    | { name: string; version: string; quote?: string }
    | { feePayer: string; memo: string; quote?: string }
    | { simulated: true; quote?: string }
}

/** The 402 answer: in the body, and as base64 in the PAYMENT-REQUIRED header. */
export type PaymentRequired = {
  x402Version: 2
  error?: string
  resource: { url: string; description: string; mimeType: string }
  accepts: PaymentRequirements[]
  extensions?: { 'offer-receipt': { info: { offers: SignedOffer[] }; schema: object } }
}

/** A statement that the server signed, in JWS compact form. `@farthing/sdk/receipts` verifies it. */
export type Signed = { format: 'jws'; signature: string }

/** What the checkout asks for, and until when. `acceptIndex` is the place in `accepts`. */
export type SignedOffer = Signed & { acceptIndex: number }

/** What can be made to happen to a checkout of a test store (docs/test-stores.md). */
export type SimulatedCase =
  | 'payment.paid'
  | 'payment.underpaid'
  | 'payment.overpaid'
  | 'payment.late'
  | 'payment.twice'
  | 'payment.reorged'
  | 'payment.reversed'
  | 'payment.unknown_then_paid'
  | 'payment.unknown_then_dead'
  | 'payment.refused'
  | 'network.down'
  | 'network.no_gas'
  | 'checkout.expired'

export type Simulate = { checkoutId: string; case: SimulatedCase }

export type Simulated = {
  case: SimulatedCase
  /** The checkout as it is now. What follows, its events tell. */
  checkout: StoreCheckout
  /**
   * What the payer was told, if the case is paid by signing: the status of the answer, and the code of its problem or the
   * reason of a refusal. Null if nobody asked to pay.
   */
  answer: { status: number; error: string | null } | null
}

/** An error, RFC 9457. */
export type ProblemDetails = {
  type: string
  title: string
  status: number
  /** What was wrong with this request. */
  detail: string
  /** What to do next. */
  advice: string
  /** Stable: branch on it. One of `ProblemCode`, or a code that a newer server has added. */
  code: string
  requestId: string
  errors?: { pointer: string; code: string; detail: string }[]
}

/** The known problem codes. v1 may add more, so expect codes that are not listed here. */
export type ProblemCode =
  | 'malformed_json'
  | 'malformed_payment'
  | 'bad_request'
  | 'invalid_api_key'
  | 'scope_required'
  | 'address_not_allowed'
  | 'key_too_wide'
  | 'store_inactive'
  | 'not_found'
  | 'cross_site'
  | 'wrong_cell'
  | 'method_not_allowed'
  | 'request_timeout'
  | 'idempotency_in_progress'
  | 'wallet_required'
  | 'key_limit'
  | 'wallet_conflict'
  | 'wallet_elsewhere'
  | 'wallet_unproven'
  | 'not_cancelable'
  | 'not_simulated'
  | 'payment_not_open'
  | 'payment_in_progress'
  | 'payment_not_final'
  | 'payment_refunded'
  | 'refund_exceeds_payment'
  | 'refund_in_progress'
  | 'refund_canceled'
  | 'refund_slots_used'
  | 'address_request_closed'
  | 'recipient_needs_member'
  | 'invoice_number_taken'
  | 'already_paid'
  | 'authorization_used'
  | 'payment_not_applied'
  | 'payment_identifier_reused'
  | 'endpoint_exists'
  | 'endpoint_limit'
  | 'endpoint_disabled'
  | 'log_restarted'
  | 'log_truncated'
  | 'checkout_expired'
  | 'checkout_canceled'
  | 'link_closed'
  | 'link_ended'
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
  | 'cell_unavailable'

/** The outcome of a payment on its chain, as base64 in the PAYMENT-RESPONSE header. */
export type Settlement = {
  success: boolean
  errorReason?: string
  /** Advice for developers, where the reason alone is not enough. */
  errorMessage?: string
  /** Empty while there is no transaction. */
  transaction: string
  network: string
  payer: string
  extensions?: { 'offer-receipt': { info: { receipt: Signed }; schema: object } }
}
