import { createHash } from 'node:crypto'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { openPage } from '@farthing/page'
import type { FastifyContextConfig, FastifyInstance } from 'fastify'
import { Problem } from '../../problems.ts'

/**
 * The page's script and style. The script's name contains a hash of its content, so browsers may cache it forever. The
 * style is inlined: on a slow phone, another round trip before the first paint costs more than its 3 KB.
 */
export type Assets = {
  readonly style: string
  readonly script: {
    readonly name: string
    /** For the `integrity` attribute of the script element. */
    readonly integrity: string
    readonly bodies: Readonly<Record<'br' | 'gzip' | 'identity', Buffer>>
  }
}

const built = new Map<string, Assets>()

/** Read or built once per process. */
export function openAssets(name: 'page' | 'console' = 'page'): Assets {
  if (built.size === 0) {
    const { console, ...page } = openPage()
    for (const [each, bundle] of Object.entries({ page, console })) built.set(each, prepare(each, bundle))
  }
  return built.get(name) as Assets
}

function prepare(
  name: string,
  { script, style }: Pick<ReturnType<typeof openPage>, 'script' | 'style'>,
): Assets {
  const identity = Buffer.from(script)
  const hash = createHash('sha384').update(identity).digest()
  return {
    style,
    script: {
      name: `${name}.${hash.toString('hex', 0, 8)}.js`,
      integrity: `sha384-${hash.toString('base64')}`,
      bodies: { br: brotliCompressSync(identity), gzip: gzipSync(identity, { level: 9 }), identity },
    },
  }
}

export function mountAssets(
  scope: FastifyInstance,
  path: string,
  { script }: Assets,
  config: FastifyContextConfig = {},
): void {
  scope.get(`${path}/assets/:name`, { config }, (request, reply) => {
    const { name } = request.params as { name: string }
    if (name !== script.name) throw new Problem('not_found', 'No such file. Reload the page.')
    const accepted = String(request.headers['accept-encoding'] ?? '')
    const encoding = /\bbr\b/.test(accepted) ? 'br' : /\bgzip\b/.test(accepted) ? 'gzip' : 'identity'
    reply.headers({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      'cross-origin-resource-policy': 'same-origin',
      vary: 'accept-encoding',
    })
    if (encoding !== 'identity') reply.header('content-encoding', encoding)
    return reply.send(script.bodies[encoding])
  })
}
