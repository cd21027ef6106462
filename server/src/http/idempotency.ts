import { hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { IdempotencyKey } from '../checkouts/create.ts'
import { invalid } from '../problems.ts'

/**
 * The Idempotency-Key of a request, scoped to its store and route. The body's bytes are its fingerprint: the same key
 * with other bytes is refused, not guessed at.
 */
export function readIdempotencyKey(request: FastifyRequest, route: string): IdempotencyKey | null {
  const key = request.headers['idempotency-key']
  if (key === undefined) return null
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw invalid({
      pointer: 'Idempotency-Key',
      code: 'header',
      detail: 'Must be 1 to 255 visible ASCII characters.',
    })
  }
  return { route, key, bodyHash: hash('sha256', request.bodyBytes, 'buffer') }
}
