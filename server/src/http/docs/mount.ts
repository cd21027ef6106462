import { readFile } from 'node:fs/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { Problem } from '../../problems.ts'
import { addressBucket, openLimiter } from '../limits.ts'
import { prefersPage } from '../page/accept.ts'
import type { Route } from '../route.ts'
import { pageHeaders, renderLanding, script } from './pages.ts'
import type { Ready, Site } from './site.ts'

/** How long a reader may see an old page after an upgrade. */
const caching = { 'cache-control': 'public, max-age=300' }
const forever = { 'cache-control': 'public, max-age=31536000, immutable' }
/** An SVG opened on its own is a document: allow its style and nothing else. */
const pictureHeaders = {
  ...caching,
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}

/** Per address: a search takes 20 ms, in the process that payments wait for. */
const searchesPerSecond = 2

/**
 * The docs for people and programs, made from the repository's files and from the routes: /docs and everything under it,
 * the Markdown of each page at its URL plus .md, /openapi.json and /llms.txt; and the page at /.
 */
export function mountDocs(
  app: FastifyInstance,
  ctx: Context,
  routes: readonly Route[],
  isReady: () => Promise<boolean>,
): void {
  const { baseUrl } = ctx.config
  const searches = openLimiter('search', searchesPerSecond, ctx.now)
  let made: Promise<Site> | null = null
  // Loaded and made on the first request: few clients read the docs, and startup shouldn't wait for them.
  const open = () => {
    made ??= import('./site.ts')
      .then(({ makeSite }) => makeSite(routes, baseUrl))
      .catch((error) => {
        // The next request tries again.
        made = null
        throw error
      })
    return made
  }

  app.get('/', async (request, reply) => {
    reply.header('vary', 'accept')
    if (!prefersPage(request.headers.accept)) return reply.send(describeServer(baseUrl))
    return reply.headers(pageHeaders).send(renderLanding(await isReady()))
  })
  app.get('/openapi.json', async (_request, reply) =>
    reply.type('application/json').send((await open()).openapi),
  )
  app.get('/llms.txt', async (_request, reply) =>
    reply.type('text/plain; charset=utf-8').send((await open()).llms),
  )
  app.get(script.path, (_request, reply) =>
    reply.headers(forever).type('text/javascript; charset=utf-8').send(script.text),
  )
  app.get('/docs/search', async (request, reply) => {
    const { q } = request.query as { q?: unknown }
    const query = typeof q === 'string' ? q.trim() : ''
    searches.take(addressBucket(request.ip), reply)
    return reply.headers(pageHeaders).send(await (await open()).renderSearch(query))
  })
  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    const { byUrl, sources, pictures, prepare } = await open()
    const path = pathOf(request)
    const page = byUrl.get(path)
    if (page) return sendPage(request, reply, prepare(page))
    const source = sources.get(path)
    if (source) return reply.headers(caching).type('text/markdown; charset=utf-8').send(source)
    const picture = pictures.get(path)
    if (picture === undefined) throw new Problem('not_found', 'No such page. The contents are at /docs.')
    return reply
      .headers(pictureHeaders)
      .type(picture.endsWith('.svg') ? 'image/svg+xml' : 'image/png')
      .send(await readFile(picture))
  }
  // People can't use a problem's JSON, so browsers get a page instead. The problem is logged and counted as usual.
  const onSend = async (request: FastifyRequest, reply: FastifyReply, payload: unknown) => {
    if (reply.statusCode !== 404 || !prefersPage(request.headers.accept)) return payload
    reply.headers({ ...pageHeaders, vary: 'accept' })
    const canSearch = searches.tryTake(addressBucket(request.ip))
    return await (await open()).renderNotFound(pathOf(request), canSearch)
  }
  app.get('/docs', { handler: answer, onSend })
  app.get('/docs/*', { handler: answer, onSend })
}

function pathOf({ url }: FastifyRequest): string {
  return (url.split('?')[0] ?? '').replace(/\/$/, '')
}

/** What programs get at /. */
function describeServer(baseUrl: string) {
  return {
    name: 'Farthing',
    about: 'A self-hosted crypto checkout.',
    docs: `${baseUrl}/docs`,
    openapi: `${baseUrl}/openapi.json`,
    llms: `${baseUrl}/llms.txt`,
  }
}

function sendPage(request: FastifyRequest, reply: FastifyReply, { identity, br }: Ready): FastifyReply {
  reply.headers({ ...pageHeaders, ...caching, vary: 'accept-encoding' })
  if (!/\bbr\b/.test(String(request.headers['accept-encoding'] ?? ''))) return reply.send(identity)
  return reply.header('content-encoding', 'br').send(br)
}
