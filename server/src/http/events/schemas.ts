import type * as Wire from '@farthing/sdk'
import Type from 'typebox'
import { Payment, StoreCheckout } from '../checkout-schemas.ts'
import { ApiKey } from '../key-schemas.ts'
import { Refund } from '../refund-schemas.ts'
import {
  Actor,
  closed,
  cursor,
  limit,
  nextCursor,
  nullable,
  of,
  Store,
  timestamp,
  Wallet,
} from '../schemas.ts'

/** The shapes of the event log and of webhooks. */
export const eventTypes = [
  'checkout.created',
  'checkout.processing',
  'checkout.reopened',
  'checkout.completed',
  'checkout.expired',
  'checkout.canceled',
  'payment.late',
  'payment.underpaid',
  'payment.overpaid',
  'payment.unmatched',
  'payment.finalized',
  'payment.reorged',
  'payment.reversed',
  'payment.accepted',
  'payment.dismissed',
  'payment.noted',
  'refund.requested',
  'refund.claimed',
  'refund.completed',
  'refund.reorged',
  'refund.failed',
  'refund.canceled',
  'store.updated',
  'store.approved',
  'store.suspended',
  'store.resumed',
  'wallet.registered',
  'wallet.updated',
  'wallet.retired',
  'wallet.confirmed',
  'wallet.refused',
  'wallet.undone',
  'key.created',
  'key.revoked',
  'member.invited',
  'member.joined',
  'member.recovered',
  'member.removed',
  'member.role_changed',
  'member.operator_added',
  'member.operator_removed',
  'member.passkey_added',
  'member.passkey_removed',
  'member.identity_added',
  'member.identity_removed',
  'member.signed_in',
  'member.session_moved',
  'webhook_endpoint.created',
  'webhook_endpoint.updated',
  'webhook_endpoint.deleted',
  'webhook_endpoint.disabled',
  'webhook_endpoint.undelivered',
  'webhook_endpoint.test',
] as const

/** The audit log is the event log, by type. */
const eventPrefixes = [...new Set(eventTypes.map((type) => `${type.slice(0, type.indexOf('.'))}.*` as const))]

const eventType = () => Type.Enum([...eventTypes])
const types = Type.Array(eventType(), {
  maxItems: eventTypes.length,
  description: 'The event types to deliver. An empty list means every type.',
})
const ordered = Type.Boolean({
  description:
    'Deliver one event at a time, in the order of the log. A failing delivery holds up all later ones until it succeeds or is given up.',
})
const url = Type.String({
  maxLength: 2048,
  description:
    'An https URL on port 443 or 8443, at a public address. Test stores of a local deployment may also use http to localhost.',
})
const status = Type.Enum(['enabled', 'disabled'])

const WebhookEndpoint = of<Wire.WebhookEndpoint>()(
  Type.Object(
    {
      id: Type.String({ description: 'Begins with we_.' }),
      url: Type.String(),
      types,
      ordered,
      status,
      disabledReason: nullable(
        Type.Enum(['store', 'gone', 'failing'], {
          description:
            'store: the store disabled it. gone: the receiver answered 410. failing: no delivery succeeded for three days.',
        }),
      ),
      failingSince: nullable(timestamp()),
      createdAt: timestamp(),
    },
    closed,
  ),
)

export { WebhookEndpoint }

export const WebhookEndpointSecret = of<Wire.WebhookEndpointSecret>()(
  Type.Object(
    {
      ...WebhookEndpoint.properties,
      secret: Type.String({
        description:
          'Signs the deliveries, as defined by Standard Webhooks 1.0. Shown only when it is created.',
        examples: ['whsec_…'],
      }),
    },
    closed,
  ),
)

export const CreateWebhookEndpoint = of<Wire.CreateWebhookEndpoint>()(
  Type.Object({ url, types: Type.Optional(types), ordered: Type.Optional(ordered) }, closed),
)

export const UpdateWebhookEndpoint = of<Wire.UpdateWebhookEndpoint>()(
  Type.Object(
    {
      url: Type.Optional(url),
      types: Type.Optional(types),
      ordered: Type.Optional(ordered),
      status: Type.Optional(status),
    },
    { ...closed, minProperties: 1 },
  ),
)

export const RollSecret = of<Wire.RollSecret>()(
  Type.Object(
    {
      overlapSeconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 604_800,
          default: 86_400,
          description: 'How long deliveries are also signed with the old secret.',
        }),
      ),
    },
    closed,
  ),
)

export const TestEvent = of<{ eventId: string }>()(Type.Object({ eventId: Type.String() }, closed))

const DeliveryAttempt = of<Wire.DeliveryAttempt>()(
  Type.Object(
    {
      attempt: Type.Integer(),
      startedAt: timestamp(),
      durationMs: nullable(
        Type.Integer({ description: 'Null if the attempt was interrupted; it may or may not have arrived.' }),
      ),
      status: nullable(
        Type.Integer({ description: 'The receiver’s HTTP status; null if it did not answer.' }),
      ),
      error: nullable(Type.String({ description: 'Why there was no answer.' })),
      answer: nullable(Type.String({ description: 'The first 4 KiB of the receiver’s answer.' })),
    },
    closed,
  ),
)

const deliveryState = Type.Enum(['pending', 'delivered', 'undeliverable'])
export const Delivery = of<Wire.Delivery>()(
  Type.Object(
    {
      id: Type.String({ description: 'Begins with dlv_.' }),
      endpointId: Type.String(),
      eventId: Type.String(),
      eventType: eventType(),
      sequence: Type.Integer(),
      state: deliveryState,
      tries: Type.Integer({
        description: 'Attempts finished since the delivery was created or last redelivered.',
      }),
      nextTryAt: nullable(timestamp()),
      attempts: Type.Array(DeliveryAttempt, { description: 'Newest first, at most 20.' }),
    },
    closed,
  ),
)

const after = Type.String({
  maxLength: 40,
  description: 'Start after this cursor of the event log. Send either after or since.',
})
export const Redeliver = of<Wire.Redeliver>()(
  Type.Object(
    {
      after: Type.Optional(after),
      since: Type.Optional(
        Type.String({ format: 'date-time', description: 'Start at this time. Send either after or since.' }),
      ),
      include: Type.Optional(
        Type.Enum(['undelivered', 'all'], {
          default: 'undelivered',
          description:
            'undelivered: only events that were never delivered, including those that happened while the endpoint was disabled.',
        }),
      ),
    },
    closed,
  ),
)
export const Redelivered = of<Wire.Redelivered>()(
  Type.Object(
    {
      count: Type.Integer({ description: 'How many deliveries are sent again now.' }),
      cursor: Type.String({ description: 'Pass it as after to continue.' }),
      hasMore: Type.Boolean(),
    },
    closed,
  ),
)

const Member = of<Wire.Member>()(
  Type.Object(
    {
      id: Type.String({ description: 'Begins with mem_.' }),
      name: Type.String(),
      role: Type.Enum(['owner', 'manager', 'developer', 'viewer']),
    },
    closed,
  ),
)

const Event = of<Wire.Event>()(
  Type.Object(
    {
      id: Type.String({ description: 'Begins with evt_.' }),
      type: eventType(),
      sequence: Type.Integer({ description: '1, 2, 3 … per store, without gaps.' }),
      createdAt: timestamp(),
      checkoutId: nullable(Type.String()),
      checkoutVersion: nullable(Type.Integer({ description: 'Counts the changes to that checkout.' })),
      actor: nullable(Actor),
      data: Type.Union([
        Type.Object({ checkout: StoreCheckout }, closed),
        Type.Object({ checkout: nullable(StoreCheckout), payment: Payment }, closed),
        Type.Object({ refund: Refund }, closed),
        Type.Object({ wallet: Wallet }, closed),
        Type.Object({ key: ApiKey }, closed),
        Type.Object({ store: Store }, closed),
        Type.Object({ member: Member }, closed),
        Type.Object({ webhookEndpoint: WebhookEndpoint }, closed),
        Type.Object({ webhookEndpoint: WebhookEndpoint, eventId: Type.String() }, closed),
      ]),
    },
    closed,
  ),
)

export const EventPage = of<Wire.EventPage>()(
  Type.Object(
    {
      data: Type.Array(Event),
      cursor: Type.String({ description: 'Pass it as after to read what happens next.' }),
      hasMore: Type.Boolean(),
    },
    closed,
  ),
)
export const WebhookEndpointPage = of<Wire.Page<Wire.WebhookEndpoint>>()(
  Type.Object({ data: Type.Array(WebhookEndpoint), nextCursor }, closed),
)
export const DeliveryPage = of<Wire.Page<Wire.Delivery>>()(
  Type.Object({ data: Type.Array(Delivery), nextCursor }, closed),
)

export const EventQuery = Type.Object(
  {
    limit,
    after: Type.Optional(
      Type.String({
        maxLength: 40,
        description: 'The cursor of the previous page. Without it, the log is read from the start.',
      }),
    ),
    type: Type.Optional(
      Type.Enum([...eventTypes, ...eventPrefixes], {
        description: 'One type, or all types that begin like this: wallet.* for example.',
      }),
    ),
    checkoutId: Type.Optional(Type.String({ maxLength: 40 })),
    actor: Type.Optional(
      Type.String({
        maxLength: 100,
        // PostgreSQL takes no zero character.
        pattern: '^[^\\u0000]+$',
        description: 'The id of a key, member or operator: only what it caused.',
      }),
    ),
    waitSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 30,
        default: 0,
        description: 'How long to wait for a new event if there is none yet.',
      }),
    ),
  },
  closed,
)

export const DeliveryQuery = Type.Object(
  {
    limit,
    cursor,
    state: Type.Optional(deliveryState),
    type: Type.Optional(eventType()),
    eventId: Type.Optional(Type.String({ maxLength: 40 })),
  },
  closed,
)

/** Schemas that the OpenAPI document lists by name. */
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
