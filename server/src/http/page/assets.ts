import { createHash } from 'node:crypto'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { buildPage } from '@farthing/page'
import type { FastifyInstance } from 'fastify'
import { Problem } from '../../problems.ts'

/** The page's script and style. Their names carry a hash of what is in them, so a browser may keep them for ever. */
type Asset = {
  readonly name: string
  readonly type: string
  /** For the `integrity` of the element that loads it. */
  readonly integrity: string
  readonly bodies: Readonly<Record<'br' | 'gzip' | 'identity', Buffer>>
}

export type Assets = { readonly script: Asset; readonly style: Asset }

let built: Assets | null = null

/** Built once a process. */
export function openAssets(): Assets {
  if (!built) {
    const { script, style } = buildPage()
    built = {
      script: makeAsset('page', 'js', 'text/javascript; charset=utf-8', script),
      style: makeAsset('page', 'css', 'text/css; charset=utf-8', style),
    }
  }
  return built
}

function makeAsset(stem: string, extension: string, type: string, text: string): Asset {
  const identity = Buffer.from(text)
  const hash = createHash('sha384').update(identity).digest()
  return {
    name: `${stem}.${hash.toString('hex', 0, 8)}.${extension}`,
    type,
    integrity: `sha384-${hash.toString('base64')}`,
    bodies: { br: brotliCompressSync(identity), gzip: gzipSync(identity, { level: 9 }), identity },
  }
}

export function mountAssets(scope: FastifyInstance, path: string, { script, style }: Assets): void {
  scope.get(`${path}/assets/:name`, (request, reply) => {
    const { name } = request.params as { name: string }
    const asset = [script, style].find((each) => each.name === name)
    if (!asset) throw new Problem('not_found', 'There is no such file. Load the page again.')
    const accepted = String(request.headers['accept-encoding'] ?? '')
    const encoding = /\bbr\b/.test(accepted) ? 'br' : /\bgzip\b/.test(accepted) ? 'gzip' : 'identity'
    reply.headers({
      'content-type': asset.type,
      'cache-control': 'public, max-age=31536000, immutable',
      'cross-origin-resource-policy': 'same-origin',
      vary: 'accept-encoding',
    })
    if (encoding !== 'identity') reply.header('content-encoding', encoding)
    return reply.send(asset.bodies[encoding])
  })
}
