import { readFile } from 'node:fs/promises'
import { brotliCompressSync } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { Problem } from '../../problems.ts'
import { describeApi } from '../reference/openapi.ts'
import { makeReference } from '../reference/page.ts'
import type { Route } from '../route.ts'
import { arrangeChapters, type Chapter, type DocsPage, listPictures } from './chapters.ts'
import { makeErrorPages } from './errors.ts'
import { headers, renderLayout, sourceUrl } from './layout.ts'

/** How long a reader may see an old page after an upgrade. */
const caching = { 'cache-control': 'public, max-age=300' }
/** An SVG opened on its own is a document: allow its style and nothing else. */
const pictureHeaders = {
  ...caching,
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}

/**
 * The docs for people and programs, made from the repository's files and from the routes: /docs and everything under it,
 * the Markdown of each page at its URL plus .md, /openapi.json and /llms.txt.
 */
export function mountDocs(app: FastifyInstance, ctx: Context, routes: readonly Route[]): void {
  let made: Site | null = null
  // Made on the first request: few clients read the docs, and startup shouldn't wait for them.
  const open = () => {
    made ??= makeSite(routes, ctx.config.baseUrl)
    return made
  }
  app.get('/openapi.json', (_request, reply) => reply.type('application/json').send(open().openapi))
  app.get('/llms.txt', (_request, reply) => reply.type('text/plain; charset=utf-8').send(open().llms))
  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    const { byUrl, sources, pictures, prepare } = open()
    const path = (request.url.split('?')[0] ?? '').replace(/\/$/, '')
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
  app.get('/docs', answer)
  app.get('/docs/*', answer)
}

type Site = ReturnType<typeof makeSite>

function makeSite(routes: readonly Route[], baseUrl: string) {
  const { chapters, pages } = arrangeChapters([makeReference(routes), ...makeErrorPages(routes, baseUrl)])
  return {
    openapi: JSON.stringify(describeApi(routes, baseUrl)),
    llms: renderLlms(chapters, baseUrl),
    byUrl: new Map(pages.map((page) => [page.url, page])),
    sources: new Map(pages.map((page) => [sourceUrl(page), page.source])),
    pictures: listPictures(),
    prepare: openPages(chapters),
  }
}

type Ready = { readonly identity: string; readonly br: Buffer }

/** Renders each page on its first request and keeps it, because it is the same for everyone. */
function openPages(chapters: readonly Chapter[]): (page: DocsPage) => Ready {
  const ready = new Map<DocsPage, Ready>()
  return (page) => {
    const made = ready.get(page)
    if (made) return made
    const identity = renderLayout(chapters, page)
    const fresh = { identity, br: brotliCompressSync(identity) }
    ready.set(page, fresh)
    return fresh
  }
}

function sendPage(request: FastifyRequest, reply: FastifyReply, { identity, br }: Ready): FastifyReply {
  reply.headers({ ...headers, ...caching, vary: 'accept-encoding' })
  if (!/\bbr\b/.test(String(request.headers['accept-encoding'] ?? ''))) return reply.send(identity)
  return reply.header('content-encoding', 'br').send(br)
}

/** The contents for language models: https://llmstxt.org. */
function renderLlms(chapters: readonly Chapter[], baseUrl: string): string {
  const lists = chapters.map(({ title, pages }) => {
    const lines = pages.map(
      (page) =>
        `- [${page.title}](${baseUrl}${page.source === null ? page.url : sourceUrl(page)}): ${page.about}`,
    )
    return `## ${title}\n\n${lines.join('\n')}\n`
  })
  return `# Farthing

> A self-hosted crypto checkout. People pay on a page with one signature, programs over HTTP 402 (x402 version 2). USDC goes from the payer straight to the store's own wallet.

To pay a checkout, POST to its checkoutUrl without a body: the answer is 402, and the PAYMENT-REQUIRED header says what to sign. Repeat the request with PAYMENT-SIGNATURE. 200 means paid. After 202, 5xx or no answer at all, send the same header again and never sign a second time: only after a 402 is nothing on its way that you signed, and Farthing sends none of it unless you present it again. Before you sign, compare amount, asset, network and payTo with what you meant to pay. If the server signs receipts, the PAYMENT-RESPONSE of the 200 has one in extensions; its keys are at /.well-known/did.json.

To sell, POST /api/v1/checkouts with X-API-Key, and send the buyer to checkoutUrl. Every answer of the API is described in ${baseUrl}/openapi.json.

${lists.join('\n')}`
}
