import { FarthingError } from './errors.ts'
import { openEvents } from './events.ts'
import { type List, openList, type PageQuery } from './list.ts'
import { openMovements } from './movements.ts'
import { openRefunds } from './open-refunds.ts'
import {
  type Calls,
  type ClientOptions,
  openCalls,
  openFiles,
  openSend,
  path,
  type RequestOptions,
} from './request.ts'
import { delayMs, wait } from './wait.ts'
import type {
  AcceptPayment,
  ApiKey,
  ApiKeySecret,
  Checkout,
  CheckoutStatus,
  CreateApiKey,
  CreateCheckout,
  CreateLink,
  CreateWebhookEndpoint,
  Currency,
  Delivery,
  DismissPayment,
  Disposition,
  EventType,
  Link,
  LinkStatus,
  Network,
  Payment,
  ProveWallet,
  Redeliver,
  Redelivered,
  RegisterWallet,
  RollSecret,
  RotateApiKey,
  Simulate,
  Simulated,
  SimulatedCase,
  Store,
  StoreCheckout,
  UpdateLink,
  UpdateStore,
  UpdateWallet,
  UpdateWebhookEndpoint,
  Wallet,
  WalletChallenge,
  WalletFamily,
  WebhookEndpoint,
  WebhookEndpointSecret,
} from './wire.ts'

// biome-ignore lint/performance/noBarrelFile: this file is the package's entry point
export { type ClientCode, FarthingError } from './errors.ts'
export type { EventFilter, EventKind, EventQuery, LogEntry, Sync } from './events.ts'
export type { List, PageQuery } from './list.ts'
export type { MovementFile, MovementFileQuery, MovementPeriod, MovementQuery } from './movements.ts'
export type {
  CreateRefundOptions,
  KeptRefunds,
  RefundQuery,
  SignRefundOptions,
  WaitOptions,
} from './open-refunds.ts'
export { RefundMismatch, type RefundTerms } from './refund-check.ts'
export { type ClientOptions, isReadableOnTheWay, type RequestOptions } from './request.ts'
export { formatUnits, parseUnits } from './units.ts'
export type * from './wire.ts'

export type FarthingClient = ReturnType<typeof createClient>

export type CheckoutQuery = PageQuery & {
  readonly status?: CheckoutStatus
  readonly orderId?: string
  readonly linkId?: string
  /** ISO 4217 code; required with `minPrice` and `maxPrice`. */
  readonly priceCurrency?: string
  readonly minPrice?: string
  readonly maxPrice?: string
  /** Created at or after this time, in ISO 8601. */
  readonly createdFrom?: string
  /** Created before this time, in ISO 8601. */
  readonly createdBefore?: string
}

export type LinkQuery = PageQuery & {
  readonly status?: LinkStatus
  /** The number of its invoice. */
  readonly invoiceNumber?: string
}

export type PaymentQuery = PageQuery & {
  readonly checkoutId?: string
  readonly disposition?: Disposition
  /** CAIP-2 identifier. */
  readonly network?: string
  readonly payer?: string
  readonly transaction?: string
  /** In the asset's smallest unit. */
  readonly minAmount?: string
  readonly maxAmount?: string
  /** First seen at or after this time, in ISO 8601. */
  readonly createdFrom?: string
  /** First seen before this time, in ISO 8601. */
  readonly createdBefore?: string
}

export type CreateOptions = RequestOptions & {
  /**
   * Identifies this attempt to create a checkout or link, for example by order and attempt number. Calling again with the
   * same key returns the same one. By default every call generates its own key, which covers the SDK's retries but not a
   * second call of yours.
   */
  readonly idempotencyKey?: string
}

/** Each try waits up to five seconds: about half a minute in all. */
const decisionTriesMax = 6

/** Creates a client for the store that the API key belongs to. Every failed call throws a `FarthingError`. */
export function createClient(options: ClientOptions) {
  const send = openSend(options)
  const calls = openCalls(send)
  const storeId = openStoreId(calls)
  return {
    checkouts: openCheckouts(calls),
    /** Addresses to send to buyers, payable until a given time. An invoice is such a link. */
    links: openLinks(calls),
    /** Payments that arrived at the store's wallets. */
    payments: openPayments(calls),
    refunds: openRefunds(calls),
    /** The store's books: one line for each thing that happened to its money. */
    movements: openMovements(send, openFiles(options)),
    events: openEvents(send),
    /** The wallets that receive payments. New checkouts use the most recently registered wallet of each family. */
    wallets: openWallets(calls, storeId),
    /** The URLs that events are delivered to. */
    webhookEndpoints: openWebhookEndpoints(calls),
    deliveries: openDeliveries(calls),
    /** What a test store's developer can make happen. */
    test: openTest(calls),
    /** The store's API keys. A key can make, rotate and revoke only keys that may do no more than itself. */
    keys: openKeys(calls),
    /** The store that the key belongs to. */
    store: openStore(calls, storeId),
    /** The chains and tokens that this deployment accepts. */
    networks: openNetworks(calls),
    /** The currencies that checkouts can currently be priced in. */
    currencies: openCurrencies(calls),
  }
}

function openCheckouts({ send, get, change }: Calls) {
  return {
    /** Creates a checkout for an order. Send the buyer to its `checkoutUrl`. */
    create: (checkout: CreateCheckout, { idempotencyKey, signal }: CreateOptions = {}): Promise<Checkout> =>
      send<Checkout>({
        method: 'POST',
        path: path`/checkouts`,
        body: checkout,
        idempotencyKey: idempotencyKey ?? crypto.randomUUID(),
        isRepeatable: true,
        ...(signal && { signal }),
      }),
    /** Reads a checkout, with its payment once it has one. */
    get: (checkoutId: string, options?: RequestOptions): Promise<StoreCheckout> =>
      get<StoreCheckout>(path`/checkouts/${checkoutId}`, options),
    list: (query?: CheckoutQuery): List<StoreCheckout> => openList(send, path`/checkouts`, query),
    /** Cancels an unpaid checkout. */
    cancel: (checkoutId: string): Promise<StoreCheckout> => change(path`/checkouts/${checkoutId}/cancel`),
  }
}

function openLinks({ send, get, change }: Calls) {
  return {
    /** Creates a link. Send its `url` to the buyer. */
    create: (link: CreateLink, { idempotencyKey, signal }: CreateOptions = {}): Promise<Link> =>
      send<Link>({
        method: 'POST',
        path: path`/links`,
        body: link,
        idempotencyKey: idempotencyKey ?? crypto.randomUUID(),
        isRepeatable: true,
        ...(signal && { signal }),
      }),
    get: (linkId: string, options?: RequestOptions): Promise<Link> =>
      get<Link>(path`/links/${linkId}`, options),
    list: (query?: LinkQuery): List<Link> => openList(send, path`/links`, query),
    update: (linkId: string, changes: UpdateLink): Promise<Link> =>
      change(path`/links/${linkId}`, changes, { method: 'PATCH' }),
    /** Closes a link for good. */
    close: (linkId: string): Promise<Link> =>
      change(path`/links/${linkId}`, { status: 'CLOSED' }, { method: 'PATCH' }),
  }
}

function openPayments({ send, get, change }: Calls) {
  /** If a decision takes long to apply, the server answers first. So we ask again until it is applied. */
  const decide = async (
    isDone: (payment: Payment) => boolean,
    at: string,
    body: unknown,
  ): Promise<Payment> => {
    for (let tries = 1; tries <= decisionTriesMax; tries++) {
      const payment = await change<Payment>(at, body)
      if (isDone(payment)) return payment
      await wait(delayMs(tries, null))
    }
    throw new FarthingError({
      code: 'timeout',
      detail: 'The decision is recorded, but not applied yet. Call again to learn the outcome.',
    })
  }

  return {
    get: (paymentId: string, options?: RequestOptions): Promise<Payment> =>
      get<Payment>(path`/payments/${paymentId}`, options),
    list: (query?: PaymentQuery): List<Payment> => openList(send, path`/payments`, query),
    /** Accepts a payment that is late, unmatched or of the wrong amount, and completes the checkout. */
    accept: (paymentId: string, body: AcceptPayment = {}): Promise<Payment> =>
      decide(({ acceptedAt }) => acceptedAt !== null, path`/payments/${paymentId}/accept`, body),
    /** Dismisses a payment: the store has dealt with it and it needs no further decision. */
    dismiss: (paymentId: string, body: DismissPayment = {}): Promise<Payment> =>
      decide(
        ({ dismissedAt, note }) =>
          dismissedAt !== null && (body.note === undefined || note?.text === body.note),
        path`/payments/${paymentId}/dismiss`,
        body,
      ),
    /** Notes something about a payment, for the store alone; null removes the note. */
    note: (paymentId: string, note: string | null): Promise<Payment> =>
      decide((payment) => (payment.note?.text ?? null) === note, path`/payments/${paymentId}/note`, {
        note,
      }),
  }
}

function openWallets({ send, change, once }: Calls, storeId: () => Promise<string>) {
  return {
    register: async ({
      family,
      ...wallet
    }: RegisterWallet & { readonly family: WalletFamily }): Promise<Wallet> =>
      change(path`/stores/${await storeId()}/wallets/${family.toLowerCase()}`, wallet),
    list: (query?: PageQuery): List<Wallet> =>
      openList(send, async () => path`/stores/${await storeId()}/wallets`, query),
    /** Says whether the wallet also receives money outside Farthing. One wallet for Farthing alone is better. */
    update: async (walletId: string, changes: UpdateWallet): Promise<Wallet> =>
      change(path`/stores/${await storeId()}/wallets/${walletId}`, changes, { method: 'PATCH' }),
    /** Gets a message that proves, once signed by the wallet, that it belongs to this store. */
    challenge: async (walletId: string): Promise<WalletChallenge> =>
      change(path`/stores/${await storeId()}/wallets/${walletId}/challenge`),
    /** Presents the signature of the challenge's message. */
    prove: async (walletId: string, body: ProveWallet): Promise<Wallet> =>
      once(path`/stores/${await storeId()}/wallets/${walletId}/prove`, body),
    retire: async (walletId: string): Promise<Wallet> =>
      change(path`/stores/${await storeId()}/wallets/${walletId}/retire`),
  }
}

function openWebhookEndpoints({ send, get, change, once }: Calls) {
  return {
    /** Registers an endpoint. The result holds its signing secret, which cannot be read again later. */
    create: (endpoint: CreateWebhookEndpoint): Promise<WebhookEndpointSecret> =>
      once(path`/webhook-endpoints`, endpoint),
    get: (endpointId: string, options?: RequestOptions): Promise<WebhookEndpoint> =>
      get<WebhookEndpoint>(path`/webhook-endpoints/${endpointId}`, options),
    list: (query?: PageQuery): List<WebhookEndpoint> => openList(send, path`/webhook-endpoints`, query),
    update: (endpointId: string, changes: UpdateWebhookEndpoint): Promise<WebhookEndpoint> =>
      change(path`/webhook-endpoints/${endpointId}`, changes, { method: 'PATCH' }),
    delete: (endpointId: string): Promise<WebhookEndpoint> =>
      once(path`/webhook-endpoints/${endpointId}`, undefined, 'DELETE'),
    /** Replaces the signing secret. Deliveries are signed with both secrets until `overlapSeconds` have passed. */
    rollSecret: (endpointId: string, body: RollSecret = {}): Promise<WebhookEndpointSecret> =>
      once(path`/webhook-endpoints/${endpointId}/roll-secret`, body),
    /** Sends an event of type `webhook_endpoint.test` to this endpoint only. */
    test: (endpointId: string): Promise<{ eventId: string }> =>
      once(path`/webhook-endpoints/${endpointId}/test`),
    /** Delivers events again from a given point, up to 5,000 per call. While `hasMore`, continue from `cursor`. */
    redeliver: (endpointId: string, body: Redeliver): Promise<Redelivered> =>
      once(path`/webhook-endpoints/${endpointId}/redeliver`, body),
    /** The deliveries to this endpoint, newest first. */
    deliveries: (
      endpointId: string,
      query?: PageQuery & {
        readonly state?: Delivery['state']
        readonly type?: EventType
        readonly eventId?: string
      },
    ): List<Delivery> => openList(send, path`/webhook-endpoints/${endpointId}/deliveries`, query),
  }
}

function openDeliveries({ get, once }: Calls) {
  return {
    get: (deliveryId: string, options?: RequestOptions): Promise<Delivery> =>
      get<Delivery>(path`/deliveries/${deliveryId}`, options),
    /** Delivers the event again, with the same event id. */
    redeliver: (deliveryId: string): Promise<Delivery> => once(path`/deliveries/${deliveryId}/redeliver`),
  }
}

function openTest({ once }: Calls) {
  return {
    /** Makes something happen to a checkout: it is underpaid, paid late, taken back by the chain … */
    simulate: (checkoutId: string, what: SimulatedCase): Promise<Simulated> =>
      once(path`/test/simulate`, { checkoutId, case: what } satisfies Simulate),
  }
}

function openKeys({ send, change, once }: Calls) {
  return {
    /** Creates a key. The result holds its text, which cannot be read again later. */
    create: (key: CreateApiKey = {}): Promise<ApiKeySecret> => once(path`/keys`, key),
    list: (query?: PageQuery): List<ApiKey> => openList(send, path`/keys`, query),
    /** Creates a key that may do the same. The old one stays valid until `overlapSeconds` have passed. */
    rotate: (keyId: string, body: RotateApiKey = {}): Promise<ApiKeySecret> =>
      once(path`/keys/${keyId}/rotate`, body),
    revoke: (keyId: string): Promise<ApiKey> => change(path`/keys/${keyId}`, undefined, { method: 'DELETE' }),
  }
}

function openStore({ get, change }: Calls, storeId: () => Promise<string>) {
  return {
    get: (options?: RequestOptions): Promise<Store> => get<Store>(path`/store`, options),
    update: async (changes: UpdateStore): Promise<Store> =>
      change(path`/stores/${await storeId()}`, changes, { method: 'PATCH' }),
  }
}

/** A key's store never changes, so it is fetched once per client. */
function openStoreId({ get }: Calls): () => Promise<string> {
  let ownStore: Promise<Store> | null = null
  return async () => {
    ownStore ??= get<Store>(path`/store`)
    try {
      return (await ownStore).id
    } catch (error) {
      ownStore = null
      throw error
    }
  }
}

function openNetworks({ get }: Calls) {
  return {
    list: async (options?: RequestOptions): Promise<Network[]> =>
      (await get<{ data: Network[] }>(path`/networks`, options)).data,
  }
}

function openCurrencies({ get }: Calls) {
  return {
    list: async (options?: RequestOptions): Promise<Currency[]> =>
      (await get<{ data: Currency[] }>(path`/currencies`, options)).data,
  }
}
