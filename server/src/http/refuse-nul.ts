import type { FastifyRequest } from 'fastify'
import { invalid } from '../problems.ts'

/**
 * PostgreSQL's text has no U+0000, and nobody means it. It is refused here in the bodies of every route that reads one, so
 * that no field has to think of it. Files are not looked into. In a path it makes an id that does not exist, and a query
 * with it is refused when PostgreSQL is asked (problem.ts).
 */
export async function refuseNul({ body, routeOptions }: FastifyRequest): Promise<void> {
  const { route } = routeOptions.config
  if (route && !route.body) return
  const pointer = findNul(body, '')
  if (pointer !== null)
    throw invalid({ pointer, code: 'nul', detail: 'The character U+0000 is not allowed.' })
}

/** Where a value or a name contains it. Bodies are parsed, so they are not deep. */
function findNul(value: unknown, pointer: string): string | null {
  if (typeof value === 'string') return value.includes('\0') ? pointer : null
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return null
  for (const [name, each] of Object.entries(value)) {
    if (name.includes('\0')) return pointer
    const found = findNul(each, `${pointer}/${name}`)
    if (found !== null) return found
  }
  return null
}
