/**
 * Sends one request many times at once. Its bytes are prepared and pipelined, so that the server is the bottleneck and
 * not the client. Answers are counted by kind.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Unanswered requests per socket. Together they are smaller than one read of Node. */
const depth = 20

export type Flood = Awaited<ReturnType<typeof openFlood>>

/**
 * Opens sockets to all addresses and gets one answer on each before use. Otherwise a server too busy to read from a new
 * socket for five seconds would treat it as a slow sender and refuse it with 408.
 */
export async function openFlood(addresses: readonly string[], count: number) {
  const lines = await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const { hostname, port, host } = new URL(addresses[i % addresses.length] ?? '')
      const socket = connect({ host: hostname, port: Number.parseInt(port, 10) })
      await once(socket, 'connect')
      await exchange(socket, `GET /readyz HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 1, new Map())
      return { socket, host }
    }),
  )
  return {
    async submit(path: string, header: string, copies: number): Promise<Map<string, number>> {
      const tally = new Map<string, number>()
      await Promise.all(
        lines.map(({ socket, host }, i) => {
          const request = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nPAYMENT-SIGNATURE: ${header}\r\n\r\n`
          return exchange(socket, request, Math.floor((copies + i) / count), tally)
        }),
      )
      return tally
    },
    close(): void {
      for (const { socket } of lines) socket.destroy()
    },
  }
}

function exchange(socket: Socket, request: string, count: number, tally: Map<string, number>): Promise<void> {
  if (count === 0) return Promise.resolve()
  return new Promise((resolve, reject) => {
    let rest = ''
    let left = count
    const end = (error?: Error) => {
      socket.removeAllListeners()
      // The next exchange notices anything that happens to the socket in between.
      socket.on('error', () => {})
      if (error) reject(error)
      else resolve()
    }
    socket.on('error', end)
    socket.on('close', () =>
      end(new Error(`closed with ${left} of ${count} unanswered: ${[...tally.keys()]}`)),
    )
    socket.on('data', (chunk) => {
      rest += chunk.toString('latin1')
      for (;;) {
        const bodyAt = rest.indexOf('\r\n\r\n') + 4
        if (bodyAt < 4) return
        const head = rest.slice(0, bodyAt)
        const length = Number.parseInt(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? '', 10)
        if (Number.isNaN(length)) return end(new Error(`no content-length in: ${head}`))
        if (rest.length < bodyAt + length) return
        const kind = kindOf(head, rest.slice(bodyAt, bodyAt + length))
        tally.set(kind, (tally.get(kind) ?? 0) + 1)
        rest = rest.slice(bodyAt + length)
        if (--left >= depth) socket.write(request)
        if (left === 0) return end()
      }
    })
    socket.write(request.repeat(Math.min(count, depth)))
  })
}

/** "200" with the settlement; any other status with its problem code. */
function kindOf(head: string, body: string): string {
  const status = head.slice(9, 12)
  if (status === '200') return `200 ${/\r\npayment-response: (\S+)/i.exec(head)?.[1]}`
  return status === '202' ? status : `${status} ${/"code":"(\w+)"/.exec(body)?.[1] ?? body}`
}
