import type { FastifyInstance } from 'fastify'

export type ConsoleRoute = { readonly method: 'GET' | 'POST'; readonly path: string }

/** Every route of the console, read from the router's own tree. */
export function listRoutes(app: FastifyInstance): ConsoleRoute[] {
  const branch: string[] = []
  return app
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const [, indent = '', part = '', methods = ''] =
        /^([│ ]*)[├└]── (\S*)(?: \(([A-Z, ]+)\))?/.exec(line) ?? []
      branch.splice(indent.length / 4, Infinity, part)
      const path = branch.join('')
      return methods
        .split(', ')
        .filter((method) => method === 'GET' || method === 'POST')
        .map((method) => ({ method, path }))
    })
}
