import { once } from 'node:events'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { type EventFilter, readEvents, sequenceOf } from '../../events/read.ts'
import type { EventWaits } from '../../events/wait.ts'
import type { StoreId } from '../../ids.ts'
import { Problem } from '../../problems.ts'

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
export async function streamEvents(
  ctx: Context,
  waits: EventWaits,
  { storeId, query, checkKey }: Asked,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  // Both before the stream starts, so that an invalid cursor or a lack of places is still answered with a problem.
  let page = await readEvents(ctx, storeId, { ...query, limit: pageSize })
  const place = waits.enter(storeId)
  const gone = new AbortController()
  request.raw.once('close', () => gone.abort())
  reply.raw.once('close', () => gone.abort())
  // A client that left during the read above has already closed, and would hold its place for ever.
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
