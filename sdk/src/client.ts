import { openEvents } from './events.ts'
import { type List, openList, type PageQuery } from './list.ts'
import { type Call, type ClientOptions, openSend, path, type RequestOptions } from './request.ts'
import type {
  AcceptPayment,
  Checkout,
  CheckoutStatus,
  CreateCheckout,
  CreateWebhookEndpoint,
  Currency,
  Delivery,
  Disposition,
  Network,
  Payment,
  Redeliver,
  Redelivered,
  RegisterWallet,
  RollSecret,
  Store,
  StoreCheckout,
  UpdateStore,
  UpdateWebhookEndpoint,
  Wallet,
  WalletFamily,
  WebhookEndpoint,
  WebhookEndpointSecret,
} from './wire.ts'

// biome-ignore lint/performance/noBarrelFile: the door of the package names what is behind it
export { type ClientCode, FarthingError } from './errors.ts'
export type { EventFilter, EventQuery, LogEntry, Sync } from './events.ts'
export type { List, PageQuery } from './list.ts'
export type { ClientOptions, RequestOptions } from './request.ts'
export { formatUnits } from './units.ts'
export type * from './wire.ts'

export type FarthingClient = ReturnType<typeof createClient>

export type CheckoutQuery = PageQuery & {
  readonly status?: CheckoutStatus
  readonly orderId?: string
  /** ISO 8601. */
  readonly createdFrom?: string
  readonly createdBefore?: string
}

export type CreateOptions = RequestOptions & {
  /**
   * Names this intention, for example the order's attempt: whoever repeats it gets the first answer. Without one each
   * call makes its own, which protects the call's retries but not a call that you make again.
   */
  readonly idempotencyKey?: string
}

/** A store's side of Farthing. Failures are thrown as FarthingError. */
export function createClient(options: ClientOptions) {
  const send = openSend(options)
  const get = <Answer>(at: string, { signal }: RequestOptions = {}) =>
    send<Answer>({ method: 'GET', path: at, isRepeatable: true, ...(signal && { signal }) })
  /** Changes that are the same when made twice. */
  const change = <Answer>(at: string, body?: unknown, method: Call['method'] = 'POST') =>
    send<Answer>({ method, path: at, body, isRepeatable: true })
  /** Changes that are not: sent again only where the server said that it did nothing. */
  const once = <Answer>(at: string, body?: unknown, method: Call['method'] = 'POST') =>
    send<Answer>({ method, path: at, body, isRepeatable: false })

  let ownStore: Promise<Store> | null = null
  /** A key's store never changes, so it is asked for once. */
  const storeId = async (): Promise<string> => {
    ownStore ??= get<Store>(path`/store`)
    try {
      return (await ownStore).id
    } catch (error) {
      ownStore = null
      throw error
    }
  }

  return {
    checkouts: {
      /** Asks a price for an order. Send the buyer to `checkoutUrl`. */
      create: (checkout: CreateCheckout, { idempotencyKey, signal }: CreateOptions = {}): Promise<Checkout> =>
        send<Checkout>({
          method: 'POST',
          path: path`/checkouts`,
          body: checkout,
          idempotencyKey: idempotencyKey ?? crypto.randomUUID(),
          isRepeatable: true,
          ...(signal && { signal }),
        }),
      get: (checkoutId: string, options?: RequestOptions): Promise<StoreCheckout> =>
        get<StoreCheckout>(path`/checkouts/${checkoutId}`, options),
      list: (query?: CheckoutQuery): List<StoreCheckout> => openList(send, path`/checkouts`, query),
      cancel: (checkoutId: string): Promise<StoreCheckout> => change(path`/checkouts/${checkoutId}/cancel`),
    },

    /** What arrived at the store's wallets. */
    payments: {
      list: (
        query?: PageQuery & { readonly checkoutId?: string; readonly disposition?: Disposition },
      ): List<Payment> => openList(send, path`/payments`, query),
      /** Takes a payment for a checkout although it is not what was asked for, and completes the checkout. */
      accept: (paymentId: string, body: AcceptPayment = {}): Promise<Payment> =>
        change(path`/payments/${paymentId}/accept`, body),
      /** Says that nothing more is to be done about a payment. */
      dismiss: (paymentId: string): Promise<Payment> => change(path`/payments/${paymentId}/dismiss`),
    },

    events: openEvents(send),

    /** Where payments go. New checkouts are paid to the wallet of a family that was registered last. */
    wallets: {
      register: async ({
        family,
        ...wallet
      }: RegisterWallet & { readonly family: WalletFamily }): Promise<Wallet> =>
        change(path`/stores/${await storeId()}/wallets/${family.toLowerCase()}`, wallet),
      list: (query?: PageQuery): List<Wallet> =>
        openList(send, async () => path`/stores/${await storeId()}/wallets`, query),
      retire: async (walletId: string): Promise<Wallet> =>
        change(path`/stores/${await storeId()}/wallets/${walletId}/retire`),
    },

    /** Where events are delivered to. */
    webhookEndpoints: {
      /** The answer holds the secret, which is shown only here. */
      create: (endpoint: CreateWebhookEndpoint): Promise<WebhookEndpointSecret> =>
        once(path`/webhook-endpoints`, endpoint),
      get: (endpointId: string, options?: RequestOptions): Promise<WebhookEndpoint> =>
        get<WebhookEndpoint>(path`/webhook-endpoints/${endpointId}`, options),
      list: (query?: PageQuery): List<WebhookEndpoint> => openList(send, path`/webhook-endpoints`, query),
      update: (endpointId: string, changes: UpdateWebhookEndpoint): Promise<WebhookEndpoint> =>
        change(path`/webhook-endpoints/${endpointId}`, changes, 'PATCH'),
      delete: (endpointId: string): Promise<WebhookEndpoint> =>
        once(path`/webhook-endpoints/${endpointId}`, undefined, 'DELETE'),
      rollSecret: (endpointId: string, body: RollSecret = {}): Promise<WebhookEndpointSecret> =>
        once(path`/webhook-endpoints/${endpointId}/roll-secret`, body),
      /** Sends an event of type `webhook_endpoint.test` to this endpoint alone. */
      test: (endpointId: string): Promise<{ eventId: string }> =>
        once(path`/webhook-endpoints/${endpointId}/test`),
      /** Delivers again from a point on: up to 5,000 events a call; go on with `cursor` while `hasMore`. */
      redeliver: (endpointId: string, body: Redeliver): Promise<Redelivered> =>
        once(path`/webhook-endpoints/${endpointId}/redeliver`, body),
      deliveries: (
        endpointId: string,
        query?: PageQuery & { readonly state?: Delivery['state']; readonly eventId?: string },
      ): List<Delivery> => openList(send, path`/webhook-endpoints/${endpointId}/deliveries`, query),
    },

    deliveries: {
      get: (deliveryId: string, options?: RequestOptions): Promise<Delivery> =>
        get<Delivery>(path`/deliveries/${deliveryId}`, options),
      redeliver: (deliveryId: string): Promise<Delivery> => once(path`/deliveries/${deliveryId}/redeliver`),
    },

    /** The store that the key belongs to. */
    store: {
      get: (options?: RequestOptions): Promise<Store> => get<Store>(path`/store`, options),
      update: async (changes: UpdateStore): Promise<Store> =>
        change(path`/stores/${await storeId()}`, changes, 'PATCH'),
    },

    /** The chains and tokens that this deployment takes payments in. */
    networks: {
      list: async (options?: RequestOptions): Promise<Network[]> =>
        (await get<{ data: Network[] }>(path`/networks`, options)).data,
    },

    /** The currencies that checkouts can be priced in now. */
    currencies: {
      list: async (options?: RequestOptions): Promise<Currency[]> =>
        (await get<{ data: Currency[] }>(path`/currencies`, options)).data,
    },
  }
}
