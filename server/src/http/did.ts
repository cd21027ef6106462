import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'
import type { Issuer } from '../payments/receipts.ts'
import { Problem } from '../problems.ts'

/**
 * Publishes the keys that sign offers and receipts. API and payment page may have two hosts, and each host has its own
 * document: the request's host chooses between these two and never appears in the answer.
 */
export function mountDid(app: FastifyInstance, { config }: Context, issuer: Issuer | null): void {
  const pageHost = new URL(config.checkoutPageUrl).host
  app.get('/.well-known/did.json', (request, reply) => {
    if (!issuer) throw new Problem('not_found', 'This deployment signs no receipts.')
    // Not request.host: what a trusted proxy passes on of X-Forwarded-Host is the client's choice, and the answer is cached.
    const url = request.headers.host === pageHost ? config.checkoutPageUrl : config.baseUrl
    return reply
      .headers({ 'cache-control': 'public, max-age=300', 'access-control-allow-origin': '*' })
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(issuer.describeKeys(url)))
  })
}
