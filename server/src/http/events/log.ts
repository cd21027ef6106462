import type { FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { readEvents, sequenceOf } from '../../events/read.ts'
import type { EventWaits } from '../../events/wait.ts'
import type { Authenticator } from '../../stores/authenticate.ts'
import { limitDefault, type Route, sendJson, storeOf } from '../route.ts'
import * as schemas from './schemas.ts'
import { streamEvents } from './stream.ts'

/** The event log: clients read it page by page, wait for new events, or stream them. */
export function eventRoutes(waits: EventWaits, authenticator: Authenticator): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/events',
      operationId: 'listEvents',
      summary: 'Read the store’s event log, oldest first',
      description:
        'Sequence numbers have no gaps, so a store that continues from its last cursor cannot miss an event. With waitSeconds, an empty page waits until something happens. With Accept: text/event-stream, the answer is a stream.',
      scope: 'webhooks:read',
      query: schemas.EventQuery,
      requestHeaders: {
        'Last-Event-ID': 'For streams: the id of the last event received. Takes precedence over after.',
      },
      answers: {
        200: {
          description: 'One page.',
          schema: schemas.EventPage,
          stream: {
            contentType: 'text/event-stream',
            description:
              'In each message, id is the cursor, event is the event’s type, and data is the event as JSON.',
          },
        },
      },
      problems: ['log_restarted'],
      async handle(ctx, request, reply) {
        const query = request.query as Static<typeof schemas.EventQuery>
        const filter = {
          type: query.type ?? null,
          checkoutId: query.checkoutId ?? null,
          actor: query.actor ?? null,
        }
        const storeId = storeOf(request)
        const checkKey = () => authenticator.authenticate(String(request.headers['x-api-key']), () => {})
        if (wantsStream(request)) {
          const after = lastEventId(request) ?? query.after ?? null
          return await streamEvents(ctx, waits, storeId, { ...filter, after }, request, reply, checkKey)
        }
        const limit = query.limit ?? limitDefault
        let page = await readEvents(ctx, storeId, { ...filter, after: query.after ?? null, limit })
        const end = ctx.now().getTime() + (query.waitSeconds ?? 0) * 1_000
        if (page.data.length > 0 || end <= ctx.now().getTime()) return sendJson(reply, 200, page)
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
        return sendJson(reply, 200, page)
      },
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
