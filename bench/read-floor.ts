/**
 * The floor that bench/read.ts compares with: `node bench/read-floor.ts bare|fastify FILE` answers every request with
 * bytes and headers that it read from a file, and does nothing else. Prints its URL once it listens.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import Fastify from 'fastify'

/** One of our answers to `GET /pay/…`, `POST /api/…` or `GET /api/…`. */
export type Sample = {
  readonly method: 'GET' | 'POST'
  /** With the checkout's id as `:checkoutId`. */
  readonly path: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Base64. */
  readonly body: string
}

if (import.meta.main) {
  const [, , kind = '', file = ''] = process.argv
  const samples = (JSON.parse(readFileSync(file, 'utf8')) as Sample[]).map((sample) => ({
    ...sample,
    bytes: Buffer.from(sample.body, 'base64'),
    prefix: sample.path.slice(0, sample.path.indexOf(':')),
  }))
  process.stdout.write(`${await (kind === 'fastify' ? serveFastify() : serveBare())}\n`)

  function serveBare(): Promise<string> {
    const server = createServer((request, response) => {
      const { method, url = '' } = request
      const sample = samples.find((one) => one.method === method && url.startsWith(one.prefix))
      if (!sample) {
        response.writeHead(404).end()
        return
      }
      response.writeHead(sample.status, sample.headers).end(sample.bytes)
    })
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => {
        const address = server.address()
        resolve(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`)
      })
    })
  }

  async function serveFastify(): Promise<string> {
    const app = Fastify({ logger: false })
    for (const { method, path, status, headers, bytes } of samples)
      app.route({
        method,
        url: path,
        handler: (_request, reply) => reply.code(status).headers(headers).send(bytes),
      })
    return await app.listen({ port: 0, host: '127.0.0.1' })
  }
}
