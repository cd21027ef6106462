import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describeVersion } from '../../version.ts'
import { type Html, html } from '../page/html.ts'
import { iconLink, mark } from '../page/mark.ts'
import type { Chapter, DocsPage } from './chapters.ts'
import type { Found } from './search.ts'

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')

/** The style is inlined. The script's name contains a hash of its content, so browsers may cache it forever. */
const style = read('style.css')

const text = read('copy.js')
const hash = createHash('sha384').update(text).digest()

export const script = {
  text,
  path: `/docs/assets/copy.${hash.toString('hex', 0, 8)}.js`,
  integrity: `sha384-${hash.toString('base64')}`,
} as const

/** Only our own pictures, our own script with the right hash, and one style, by its hash. */
export const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'integrity-policy': 'blocked-destinations=(script)',
  'referrer-policy': 'no-referrer',
} as const

/** The whole page. The text comes first and the contents last; in a wide window they are side by side. */
export function renderLayout(chapters: readonly Chapter[], page: DocsPage): string {
  const inOrder = chapters.flatMap(({ pages }) => pages)
  const body = page.render()
  const place = inOrder.indexOf(page)
  const before = place > 0 ? inOrder[place - 1] : undefined
  // A page with a search of its own needs no second one.
  const isSearching = body.html.includes('role="search"')
  const after = place >= 0 ? inOrder[place + 1] : undefined
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${page.about}">
<title>${page.title === 'Farthing' ? 'Farthing' : `${page.title} · Farthing`}</title>
${iconLink}
${page.source !== null && html`<link rel="alternate" type="text/markdown" href="${sourceUrl(page)}">`}
<style>${{ html: style }}</style>
<script type="module" src="${script.path}" integrity="${script.integrity}"></script>
</head>
<body>
<header><a class="name" href="/docs">${mark}Farthing</a><a class="to-contents" href="#contents">Contents</a>
${isSearching ? null : renderSearchForm('', 'search')}</header>
<main>
${body}
<footer>
${before !== undefined && html`<a rel="prev" href="${before.url}"><small>Previous</small>${before.title}</a>`}
${after !== undefined && html`<a rel="next" href="${after.url}"><small>Next</small>${after.title}</a>`}
</footer>
</main>
<nav id="contents" aria-label="Contents">
${chapters.map(
  ({ title, pages }) =>
    html`<section><h2>${title}</h2><ul>${pages.map((entry) => renderEntry(entry, page))}</ul></section>`,
)}
</nav>
</body>
</html>
`.html
}

/** The open page also lists its sections. */
function renderEntry(entry: DocsPage, open: DocsPage): Html {
  if (entry !== open) return html`<li><a href="${entry.url}">${entry.title}</a></li>`
  const parts = entry.headings.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)
  const list = parts.length > 0 && html`<ul>${parts}</ul>`
  return html`<li><a href="${entry.url}" aria-current="page">${entry.title}</a>${list}</li>`
}

/** Where programs get the page as Markdown. */
export function sourceUrl({ url }: DocsPage): string {
  return url === '/docs' ? '/docs/README.md' : `${url}.md`
}

/** What a search found. Made for one request, as is the page for a wrong address. */
export function makeSearchPage(query: string, found: readonly Found[]): DocsPage {
  return {
    ...madeNow,
    url: '/docs/search',
    title: query === '' ? 'Search' : `Search: ${query}`,
    about: 'Search the docs.',
    render: () => html`<h1>Search</h1>
${renderSearchForm(query, 'search-here')}
${query !== '' && renderFound(query, found)}`,
  }
}

export function makeNotFoundPage(path: string, found: readonly Found[]): DocsPage {
  return {
    ...madeNow,
    url: path,
    title: 'Page not found',
    about: 'There is no page at this address.',
    render: () => html`<h1>Page not found</h1>
<p>The docs have no page at <code>${path}</code>. Search for it, or start at <a href="/docs">the overview</a>, the
<a href="/docs/api">API reference</a> or the <a href="/docs/errors">errors</a>.</p>
${renderSearchForm('', 'search-here')}
${
  found.length > 0 &&
  html`<h2>Perhaps you meant</h2>
${renderList(found.slice(0, suggestionsMax))}`
}`,
  }
}

const suggestionsMax = 5
const madeNow = { headings: [], source: null } as const

/** The id differs between the form in the header and one in the text. */
function renderSearchForm(query: string, id: string): Html {
  return html`<form class="search" role="search" action="/docs/search"><label for="${id}">Search the docs</label>
<input id="${id}" type="search" name="q" value="${query}" maxlength="100" placeholder="Search the docs"
autocomplete="off"><button>Search</button></form>`
}

function renderFound(query: string, found: readonly Found[]): Html {
  if (found.length === 0)
    return html`<p role="status">Nothing found for “${query}”. Try fewer or other words, or look through the
contents.</p>`
  return html`<p class="status" role="status">Sections about “${query}”, the best first</p>
${renderList(found)}`
}

function renderList(found: readonly Found[]): Html {
  const item = ({ page, title, url, excerpt }: Found) => {
    const where = title !== page.title && html` <small>${page.title}</small>`
    return html`<li><a href="${url}">${title}</a>${where}<p>${excerpt}</p></li>`
  }
  return html`<ol class="found">${found.map(item)}</ol>`
}

/** The page at /: what answers at the server's address, and where to go from there. */
export function renderLanding(isReady: boolean): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="A self-hosted crypto checkout.">
<title>Farthing</title>
${iconLink}
<style>${{ html: style }}</style>
</head>
<body class="landing">
<main>
<h1>${mark}Farthing</h1>
<p>This server runs a crypto checkout: stores get paid in USDC, straight into their own wallets. People pay on a web
page, programs over HTTP 402.</p>
<p class="state"><span class="${isReady ? 'up' : 'down'}">${isReady ? 'Ready' : 'Not ready'}</span> ${
    isReady ? 'It answers requests.' : 'It cannot reach its database or is about to stop.'
  }</p>
<h2>Are you here to pay?</h2>
<p>Open the complete link that the store gave you. It leads to a page with the store’s name and the amount. If that page
does not open, ask the store for a new link.</p>
<h2>Are you building a store or an agent?</h2>
${renderSearchForm('', 'search')}
<ul>
<li><a href="/docs">Documentation</a></li>
<li><a href="/docs/api">API reference</a>, also as <a href="/openapi.json">openapi.json</a></li>
<li><a href="/docs/x402">Paying from a program</a>, and <a href="/llms.txt">llms.txt</a> for language models</li>
<li><a href="/docs/errors">Errors</a> and what to do about them</li>
<li>Health: <a href="/livez">livez</a> and <a href="/readyz">readyz</a></li>
</ul>
<p class="version">${describeVersion()}</p>
</main>
</body>
</html>
`.html
}
