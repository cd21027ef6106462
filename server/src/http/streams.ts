import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'

/** Shorter than the time after which proxies drop silent connections. */
const heartbeatMs = 15_000
/** Older streams are closed, so that they spread over the processes again after a restart and old tabs are dropped. */
const ageMaxMs = 15 * 60_000

/** A connection of server-sent events. */
export type Stream = { write(text: string): void }

/**
 * The streams of one kind in a process. A client that leaves `unreadBytesMax` unread is dropped. Clients reconnect
 * `retryMs` after their stream has ended.
 */
export function openStreams(now: () => Date, unreadBytesMax: number, retryMs: number) {
  const open = new Map<ServerResponse, number>()
  let isClosing = false

  function write(response: ServerResponse, text: string): void {
    if (response.writableLength > unreadBytesMax) response.destroy()
    else if (!response.writableEnded) response.write(text)
  }

  const heartbeat = setInterval(() => {
    const oldest = now().getTime() - ageMaxMs
    for (const [response, openedAt] of open)
      if (openedAt < oldest) response.end()
      else write(response, ':\n\n')
  }, heartbeatMs).unref()

  return {
    /** Answers a request with a stream. `forget` is called once, when it has ended. */
    open(reply: FastifyReply, first: string, forget: (stream: Stream) => void): Stream {
      reply.hijack()
      const response = reply.raw
      response.writeHead(200, {
        ...(reply.getHeaders() as Record<string, string>),
        'content-type': 'text/event-stream; charset=utf-8',
        // Otherwise nginx and similar proxies buffer events.
        'x-accel-buffering': 'no',
      })
      response.write(`retry: ${retryMs}\n${first}`)
      const stream: Stream = { write: (text) => write(response, text) }
      open.set(response, now().getTime())
      const leave = () => {
        open.delete(response)
        forget(stream)
      }
      // If the client disconnected before, no close event follows. The caller has to know the stream first.
      if (response.closed || response.socket?.destroyed !== false) queueMicrotask(leave)
      else response.once('close', leave)
      if (isClosing) response.end()
      return stream
    },
    /** For preClose: the server then waits for open connections, and these would never close by themselves. */
    close(): void {
      isClosing = true
      clearInterval(heartbeat)
      // Spread out, so that clients don't all come back to the remaining processes at once.
      for (const response of open.keys())
        response.end(`retry: ${retryMs + Math.floor(Math.random() * retryMs)}\n\n`)
    },
  }
}
