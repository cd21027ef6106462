import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A connection that stands still: the bytes it had moved when that was first seen, and the checks since. */
type Stall = { readonly taken: number; readonly received: number; looks: number }

const looksMax = 6

/**
 * Drops clients that leave an answer unread and go on sending. Node's own timeout drops those on whose connections
 * nothing moves for `limitMs`, but what a client sends counts as movement, even empty lines between two requests.
 */
export function dropUnread(server: Server, limitMs: number): void {
  const stalls = new Map<Socket, Stall | null>()
  server.on('connection', (socket: Socket) => {
    stalls.set(socket, null)
    socket.once('close', () => stalls.delete(socket))
  })
  const timer = setInterval(() => {
    for (const [socket, before] of stalls) {
      const stall = look(socket, before)
      if (stall && stall.looks > looksMax && socket.bytesRead > stall.received) socket.destroy()
      else if (stall !== before) stalls.set(socket, stall)
    }
  }, limitMs / looksMax)
  timer.unref()
  server.once('close', () => clearInterval(timer))
}

/** For an answer that may pause for longer than that. It ends only a connection whose client leaves something unread. */
export function letPause(response: ServerResponse): void {
  response.on('timeout', (socket: Socket) => {
    if (socket.writableLength > 0) socket.destroy()
  })
}

/** Null if nothing waits for the client. */
function look(socket: Socket, before: Stall | null): Stall | null {
  if (socket.writableLength === 0) return null
  const taken = socket.bytesWritten - socket.writableLength
  if (before?.taken !== taken) return { taken, received: socket.bytesRead, looks: 1 }
  before.looks++
  return before
}
