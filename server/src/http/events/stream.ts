import { once } from 'node:events'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { type EventFilter, readEvents, sequenceOf } from '../../events/read.ts'
import type { EventWaits } from '../../events/wait.ts'
import type { StoreId } from '../../ids.ts'
import { Problem } from '../../problems.ts'

/** Proxies end a connection on which nothing was said for a minute; some after 30 s. */
const heartbeatMs = 15_000
const pageSize = 100

/**
 * The log as server-sent events: what is there from the cursor on, then what happens, as it happens. Each carries its
 * cursor as `id`, so a client that reconnects with Last-Event-ID misses nothing. The key is looked at again before each
 * page: a stream does not outlive it.
 */
export async function streamEvents(
  ctx: Context,
  waits: EventWaits,
  storeId: StoreId,
  query: EventFilter & { after: string | null },
  request: FastifyRequest,
  reply: FastifyReply,
  checkKey: () => Promise<unknown>,
): Promise<FastifyReply> {
  // A cursor that is refused is refused as a problem, before the stream begins.
  let page = await readEvents(ctx, storeId, { ...query, limit: pageSize })
  const gone = new AbortController()
  request.raw.once('close', () => gone.abort())
  reply.raw.once('close', () => gone.abort())
  reply.hijack()
  reply.raw.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    'content-type': 'text/event-stream; charset=utf-8',
    'x-accel-buffering': 'no',
    // A connection that outlived its stream would hold up the process's stop.
    connection: 'close',
  })
  const write = async (text: string) => {
    if (!reply.raw.write(text)) await once(reply.raw, 'drain', { signal: gone.signal })
  }
  try {
    // Says at once that the stream stands.
    await write(': the log\n\n')
    while (!gone.signal.aborted && !waits.isClosed) {
      const [epoch = ''] = page.cursor.split('-')
      for (const event of page.data)
        await write(
          `id: ${epoch}-${event.sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
        )
      if (page.data.length === 0) await write(': still here\n\n')
      const after = page.cursor
      if (!page.hasMore) await waits.until(storeId, sequenceOf(after), heartbeatMs, gone.signal)
      await checkKey()
      page = await readEvents(ctx, storeId, { ...query, after, limit: pageSize })
    }
  } catch (error) {
    // The client comes back with its last id and is told then, where there is something to be told.
    if (!gone.signal.aborted && !(error instanceof Problem))
      ctx.log.warn({ requestId: request.id, err: error }, 'a stream of events broke off')
  }
  reply.raw.end()
  return reply
}
