import { type Html, html } from '../page/html.ts'
import type { DocsPage } from './chapters.ts'
import type { Found } from './search.ts'

/** Pages that are made for one request: what a search found, and what to do at a wrong address. */

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
export function renderSearchForm(query: string, id: string): Html {
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
