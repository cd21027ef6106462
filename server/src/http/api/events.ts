import { once } from 'node:events'
import type * as Wire from '@farthing/sdk'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static, type TSchema } from 'typebox'
import type { Context } from '../../context.ts'
import { type EventFilter, readEvents, sequenceOf } from '../../events/read.ts'
import type { EventWaits } from '../../events/wait.ts'
import type { StoreId } from '../../ids.ts'
import { Problem } from '../../problems.ts'
import type { Authenticator } from '../../stores/authenticate.ts'
import { answer, limitDefault, type Route } from '../route.ts'
import { StoreCheckout } from './checkouts.ts'
import { eventTypes } from './event-types.ts'
import { ApiKey } from './keys.ts'
import { Link } from './links.ts'
import { Payment } from './payments.ts'
import { Refund } from './refunds.ts'
import { Actor, limit, nullable, object, of, shape, timestamp } from './shapes.ts'
import { Store } from './store.ts'
import { Wallet } from './wallets.ts'
import { WebhookEndpoint } from './webhooks.ts'

const Member = shape<Wire.Member>()({
  id: Type.String({ description: 'Begins with mem_.' }),
  name: Type.String(),
  role: Type.Enum(['owner', 'manager', 'developer', 'viewer']),
})

type TypesOf<Noun extends string> = Extract<Wire.EventType, `${Noun}.${string}`>

/** The types that begin with this word. */
function typesOf<Noun extends string>(noun: Noun): TypesOf<Noun>[] {
  return eventTypes.filter((type): type is TypesOf<Noun> => type.startsWith(`${noun}.`))
}

/** An event of these types, and what it is about. */
function eventOf<Types extends Wire.EventType, Data extends TSchema>(types: Types[], data: Data) {
  return object({
    id: Type.String({ description: 'Begins with evt_.' }),
    type: Type.Enum(types),
    sequence: Type.Integer({ description: '1, 2, 3 … per store, without gaps.' }),
    createdAt: timestamp(),
    checkoutId: nullable(Type.String()),
    checkoutVersion: nullable(Type.Integer({ description: 'Counts the changes to that checkout.' })),
    actor: nullable(Actor),
    data,
  })
}

const undelivered = 'webhook_endpoint.undelivered'

export const Event = of<Wire.Event>()(
  Type.Union(
    [
      eventOf(typesOf('checkout'), object({ checkout: StoreCheckout })),
      eventOf(typesOf('payment'), object({ checkout: nullable(StoreCheckout), payment: Payment })),
      eventOf(typesOf('refund'), object({ refund: Refund })),
      eventOf(typesOf('link'), object({ link: Link })),
      eventOf(typesOf('wallet'), object({ wallet: Wallet })),
      eventOf(typesOf('key'), object({ key: ApiKey })),
      eventOf(typesOf('store'), object({ store: Store })),
      eventOf(typesOf('member'), object({ member: Member })),
      eventOf(
        typesOf('webhook_endpoint').filter((type) => type !== undelivered),
        object({ webhookEndpoint: WebhookEndpoint }),
      ),
      eventOf([undelivered], object({ webhookEndpoint: WebhookEndpoint, eventId: Type.String() })),
    ],
    { description: 'The type says what data is about.' },
  ),
)

const EventPage = shape<Wire.EventPage>()({
  data: Type.Array(Event),
  cursor: Type.String({ description: 'Pass it as after to read what happens next.' }),
  hasMore: Type.Boolean(),
})

/** The audit log is the event log, by type. */
const eventPrefixes = [...new Set(eventTypes.map((type) => `${type.slice(0, type.indexOf('.'))}.*` as const))]

const EventQuery = object({
  limit,
  after: Type.Optional(
    Type.String({
      maxLength: 40,
      description: 'The cursor of the previous page. Without it, the log is read from the start.',
    }),
  ),
  type: Type.Optional(
    Type.Enum([...eventTypes, ...eventPrefixes], {
      description: 'One type, or all types with the same beginning, for example wallet.*.',
    }),
  ),
  checkoutId: Type.Optional(Type.String({ maxLength: 40 })),
  actor: Type.Optional(
    Type.String({
      maxLength: 100,
      // PostgreSQL text cannot hold a zero character.
      pattern: '^[^\\u0000]+$',
      description: 'The id of a key, member or operator. Only events that it caused are returned.',
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
})

/** The event log: clients read it page by page, wait for new events, or stream them. */
export function eventRoutes(waits: EventWaits, authenticator: Authenticator): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/events',
      operationId: 'listEvents',
      summary: 'Read the store’s event log, oldest first',
      description:
        'Sequence numbers have no gaps, so a store that continues from its last cursor cannot miss an event. If the operator deletes old checkouts, their events go too: without after, the log begins after the last deleted event. With waitSeconds, an empty page waits until something happens. With Accept: text/event-stream, the answer is a stream.',
      scope: 'webhooks:read',
      query: EventQuery,
      requestHeaders: {
        'Last-Event-ID': 'For streams: the id of the last event received. Takes precedence over after.',
      },
      answers: {
        200: {
          description: 'One page.',
          schema: EventPage,
          stream: {
            contentType: 'text/event-stream',
            description:
              'In each message, id is the cursor, event is the event’s type, and data is the event as JSON.',
          },
        },
      },
      problems: ['log_restarted', 'log_truncated'],
      handle: answer<Static<typeof EventQuery>>(200, async ({ ctx, request, reply, storeId, input }) => {
        const { type = null, checkoutId = null, actor = null, limit = limitDefault, waitSeconds = 0 } = input
        const filter = { type, checkoutId, actor }
        const checkKey = () => authenticator.authenticate(String(request.headers['x-api-key']), () => {})
        if (wantsStream(request)) {
          const after = lastEventId(request) ?? input.after ?? null
          const asked = { storeId, query: { ...filter, after }, checkKey }
          return await streamEvents(ctx, waits, asked, request, reply)
        }
        let page = await readEvents(ctx, storeId, { ...filter, after: input.after ?? null, limit })
        const end = ctx.now().getTime() + waitSeconds * 1_000
        if (page.data.length > 0 || end <= ctx.now().getTime()) return page
        const place = waits.enter(storeId)
        const gone = new AbortController()
        reply.raw.once('close', () => gone.abort())
        try {
          for (;;) {
            const leftMs = end - ctx.now().getTime()
            if (page.data.length > 0 || leftMs <= 0 || waits.isClosed || gone.signal.aborted) break
            await place.until(sequenceOf(page.cursor), leftMs, gone.signal)
            await checkKey()
            page = await readEvents(ctx, storeId, { ...filter, after: page.cursor, limit })
          }
        } finally {
          place.leave()
        }
        return page
      }),
    },
  ]
}

function wantsStream(request: FastifyRequest): boolean {
  return /\btext\/event-stream\b/.test(request.headers.accept ?? '')
}

function lastEventId(request: FastifyRequest): string | undefined {
  const header = request.headers['last-event-id']
  return typeof header === 'string' && header !== '' ? header : undefined
}

/** Most proxies close a connection after a minute of silence, some after 30 s. */
const heartbeatMs = 15_000
const pageSize = 100

type Asked = {
  readonly storeId: StoreId
  readonly query: EventFilter & { readonly after: string | null }
  readonly checkKey: () => Promise<unknown>
}

/**
 * Streams the log as server-sent events: first the existing events after the cursor, then new ones as they happen. Each
 * carries its cursor as `id`, so a client that reconnects with Last-Event-ID misses nothing. The key is checked again
 * before each page, so a stream doesn't outlive its key.
 */
async function streamEvents(
  ctx: Context,
  waits: EventWaits,
  { storeId, query, checkKey }: Asked,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  // Done before the stream starts, so that an invalid cursor or a lack of places is still answered with a problem.
  let page = await readEvents(ctx, storeId, { ...query, limit: pageSize })
  const place = waits.enter(storeId)
  const gone = new AbortController()
  request.raw.once('close', () => gone.abort())
  reply.raw.once('close', () => gone.abort())
  // If the client left during the read above, no close event follows, and its place would never be free again.
  if (reply.raw.destroyed) gone.abort()
  reply.hijack()
  reply.raw.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    'x-accel-buffering': 'no',
    // A connection that stays open after its stream would delay the process's stop.
    connection: 'close',
  })
  const write = async (text: string) => {
    if (!reply.raw.write(text)) await once(reply.raw, 'drain', { signal: gone.signal })
  }
  try {
    // Tells the client at once that the stream is open.
    await write(': the log\n\n')
    while (!gone.signal.aborted && !waits.isClosed) {
      const [epoch = ''] = page.cursor.split('-')
      for (const event of page.data)
        await write(
          `id: ${epoch}-${event.sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
        )
      if (page.data.length === 0) await write(': still here\n\n')
      const after = page.cursor
      if (!page.hasMore) await place.until(sequenceOf(after), heartbeatMs, gone.signal)
      await checkKey()
      page = await readEvents(ctx, storeId, { ...query, after, limit: pageSize })
    }
  } catch (error) {
    // The client reconnects with its last id. If a Problem ended the stream, it gets that as its answer then.
    if (!gone.signal.aborted && !(error instanceof Problem))
      ctx.log.warn(
        { requestId: request.id, err: error },
        'an event stream broke off; the client can resume with Last-Event-ID',
      )
  } finally {
    place.leave()
  }
  reply.raw.end()
  return reply
}
