import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { atEnd } from '../../../support/at-end.ts'

/** A request as a receiver saw it. */
export type Received = {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** What to do with a request: a status to answer with, or something worse. */
export type Behaviour = (received: Received, response: ServerResponse, request: IncomingMessage) => unknown

export const answer =
  (status: number, headers: Readonly<Record<string, string>> = {}, body = ''): Behaviour =>
  (_received, response) =>
    response.writeHead(status, headers).end(body)

/** Ends the connection with a reset. */
export const reset: Behaviour = (_received, response) => response.socket?.resetAndDestroy()
/** Says its status, then a byte now and then, for ever. */
export const drip =
  (status: number): Behaviour =>
  (_received, response) => {
    response.writeHead(status)
    const timer = setInterval(() => response.write('.'), 50)
    response.on('close', () => clearInterval(timer))
  }
/** Says its status and then as much as anyone will take. */
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

/** An HTTP server on loopback that keeps what it received and behaves as it is told, path by path. */
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
