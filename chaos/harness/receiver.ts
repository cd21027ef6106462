import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Received } from '../checker/history.ts'
import type { Random } from './random.ts'

/** Receives webhooks and records all of them. The first try of some fails, as in production. */
export async function openReceiver(random: Random) {
  const received: Received[] = []
  const failed = new Set<string>()
  const endpoints = new Map<string, string>()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const header = (name: string) => String(request.headers[name] ?? '')
      const id = header('webhook-id')
      const isRefused = !failed.has(id) && random.isLucky(0.02)
      if (isRefused) failed.add(id)
      const status = isRefused ? 500 : 204
      received.push({
        endpointId: endpoints.get(request.url ?? '') ?? '',
        id,
        timestamp: header('webhook-timestamp'),
        signature: header('webhook-signature'),
        body: Buffer.concat(chunks).toString(),
        status,
      })
      response.writeHead(status).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    /** Endpoint ids by path. */
    endpoints,
    close(): void {
      server.close()
      server.closeAllConnections()
    },
  }
}
