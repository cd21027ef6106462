import { hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { IdempotencyKey } from '../../checkouts/create.ts'
import { invalid } from '../../problems.ts'

/**
 * Reads a request's Idempotency-Key, which is scoped to the store and route. It comes with a hash of the body's bytes:
 * the same key with different bytes is rejected.
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
  return { route, key, bodyHash: hash('sha256', request.bodyBytes, 'base64') }
}
