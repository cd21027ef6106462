import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'
import { cellOf } from '../ids.ts'
import { wrongCell } from '../problems.ts'
import { isKeyId } from '../stores/api-keys.ts'

/**
 * Answers an id of another cell with 421, by its tag and before any query: a request that the proxy sent to the wrong cell
 * must not get "not found". Ids are in the path, and in the fields of query and body whose names say so. An order id is
 * the store's own text, whatever it looks like. Keys are checked in stores/authenticate.ts.
 */
export function mountCellCheck(app: FastifyInstance, { config: { cell } }: Context): void {
  app.addHook('onRequest', async (request) => {
    for (const value of Object.values((request.params ?? {}) as object)) refuse(value, cell)
    refuseFields(request.query, cell)
  })
  app.addHook('preHandler', async (request) => refuseFields(request.body, cell))
}

function refuseFields(fields: unknown, cell: string): void {
  if (fields === null || typeof fields !== 'object' || Array.isArray(fields)) return
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'cursor' || name === 'before' || (name.endsWith('Id') && name !== 'orderId'))
      refuse(value, cell)
  }
}

function refuse(value: unknown, cell: string): void {
  if (typeof value !== 'string') return
  const found = isKeyId(value) ? value.slice(0, 2) : cellOf(value)
  if (found !== null && found !== cell) throw wrongCell(value, found, cell)
}
