import { brotliCompressSync } from 'node:zlib'
import { describeApi } from '../reference/openapi.ts'
import { makeReference } from '../reference/page.ts'
import type { Route } from '../route.ts'
import { arrangeChapters, type Chapter, type DocsPage, listPictures } from './chapters.ts'
import { makeErrorPages } from './errors.ts'
import { makeNotFoundPage, makeSearchPage, renderLayout, sourceUrl } from './pages.ts'
import { openSearch, queryLengthMax } from './search.ts'

export type Site = ReturnType<typeof makeSite>

/** Everything that the docs consist of. Pages are rendered, and the search's index is built, when first asked for. */
export function makeSite(routes: readonly Route[], baseUrl: string) {
  const { chapters, pages } = arrangeChapters([
    makeReference(routes, baseUrl),
    ...makeErrorPages(routes, baseUrl),
  ])
  let index: ReturnType<typeof openSearch> | null = null
  const search = async (query: string) => {
    index ??= openSearch(pages, (page) => weightOf(chapters, page)).catch((error) => {
      index = null
      throw error
    })
    return (await index)(query)
  }
  return {
    openapi: JSON.stringify(describeApi(routes, baseUrl)),
    llms: renderLlms(chapters, baseUrl),
    byUrl: new Map(pages.map((page) => [page.url, page])),
    sources: new Map(pages.map((page) => [sourceUrl(page), page.source])),
    pictures: listPictures(),
    prepare: openPages(chapters),
    renderSearch: async (asked: string) => {
      const query = asked.slice(0, queryLengthMax)
      return renderLayout(chapters, makeSearchPage(query, query === '' ? [] : await search(query)))
    },
    /** Suggests pages by the words of the path, if there may be a search. */
    renderNotFound: async (path: string, canSearch: boolean) => {
      const found = canSearch ? await search(path.replace(/^\/docs|\.md$/g, '')) : []
      return renderLayout(chapters, makeNotFoundPage(path, found))
    },
  }
}

/** Pages that readers need first count more than single errors, decisions and evidence, which repeat their words. */
function weightOf(chapters: readonly Chapter[], page: DocsPage): number {
  const chapter = chapters.find(({ pages }) => pages.includes(page))?.title
  return chapter !== undefined && readFirst.has(chapter) ? 1 : 0.4
}

const readFirst: ReadonlySet<string> = new Set(['Everyone', 'Owner', 'Developer', 'Agent', 'Operator'])

export type Ready = { readonly identity: string; readonly br: Buffer }

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

To pay a checkout, POST to its checkoutUrl without a body: the answer is 402, and the PAYMENT-REQUIRED header says what to sign. Repeat the request with PAYMENT-SIGNATURE. 200 means paid. After 202, 5xx or no answer at all, send the same header again, and do not sign again before you get a 402. A 402 means that nothing you signed is on its way, and that Farthing will not send any of it unless you present it again. Before you sign, compare amount, asset, network and payTo with what you meant to pay. If the server signs receipts, the PAYMENT-RESPONSE of the 200 has one in extensions; its keys are at /.well-known/did.json.

To sell, POST /api/v1/checkouts with X-API-Key, and send the buyer to checkoutUrl. Every answer of the API is described in ${baseUrl}/openapi.json.

${lists.join('\n')}`
}
