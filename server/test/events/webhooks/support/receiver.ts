import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { atEnd } from '../../../support/at-end.ts'

/** A request as the receiver got it. */
export type Received = {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** How a receiver reacts to a request: it answers with a status, or misbehaves. */
export type Behaviour = (received: Received, response: ServerResponse, request: IncomingMessage) => unknown

export const answer =
  (status: number, headers: Readonly<Record<string, string>> = {}, body = ''): Behaviour =>
  (_received, response) =>
    response.writeHead(status, headers).end(body)

/** Resets the connection. */
export const reset: Behaviour = (_received, response) => response.socket?.resetAndDestroy()
/** Sends its status, then one byte every 50 ms, forever. */
export const drip =
  (status: number): Behaviour =>
  (_received, response) => {
    response.writeHead(status)
    const timer = setInterval(() => response.write('.'), 50)
    response.on('close', () => clearInterval(timer))
  }
/** Sends its status, then as many bytes as the client accepts. */
export const flood =
  (status: number): Behaviour =>
  (_received, response) => {
    response.writeHead(status)
    const chunk = Buffer.alloc(65_536, 'x')
    const pour = () => {
      while (!response.destroyed && response.write(chunk));
    }
    response.on('drain', pour)
    pour()
  }

/** An HTTP server on loopback that records requests and reacts with `behave`, which a test can replace. */
export async function openReceiver(behave: Behaviour = answer(204)) {
  const received: Received[] = []
  const receiver = { behave, received, connections: 0 }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const seen = {
        path: request.url ?? '',
        headers: request.headers as Record<string, string>,
        body: Buffer.concat(chunks),
      }
      received.push(seen)
      receiver.behave(seen, response, request)
    })
    response.on('error', () => {})
  })
  server.on('connection', () => receiver.connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = async () => {
    server.closeAllConnections()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  atEnd(close)
  return Object.assign(receiver, { port, url: `http://127.0.0.1:${port}`, close })
}
