import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Received } from '../checker/history.ts'
import type { Random } from './random.ts'

/**
 * Receives webhooks and records all of them. The first try of some fails, as in production. With a folder, it has a
 * certificate there and speaks https, as receivers of live stores must.
 */
export async function openReceiver(random: Random, folder: string | null) {
  const received: Received[] = []
  const failed = new Set<string>()
  const endpoints = new Map<string, string>()
  const receive: RequestListener = (request, response) => {
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
  }
  const certificate = folder === null ? null : certify(folder)
  const server = certificate ? createSecureServer(certificate, receive) : createServer(receive)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `${certificate ? 'https' : 'http'}://127.0.0.1:${port}`,
    /** The file with the certificate that its clients must trust. */
    certificateFile: certificate?.file ?? null,
    received,
    /** Endpoint ids by path. */
    endpoints,
    close(): void {
      server.close()
      server.closeAllConnections()
    },
  }
}

function certify(folder: string): { readonly file: string; readonly key: Buffer; readonly cert: Buffer } {
  const [key, file] = [join(folder, 'receiver.key'), join(folder, 'receiver.crt')]
  const kind = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
  ]
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
  execFileSync('openssl', [...kind, ...subject, '-keyout', key, '-out', file], { stdio: 'ignore' })
  return { file, key: readFileSync(key), cert: readFileSync(file) }
}
