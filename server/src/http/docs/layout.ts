import { type Html, html } from '../page/html.ts'
import { script, style } from './assets.ts'
import type { Chapter, DocsPage } from './chapters.ts'
import { renderSearchForm } from './pages.ts'

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
<link rel="icon" href="data:,">
${page.source !== null && html`<link rel="alternate" type="text/markdown" href="${sourceUrl(page)}">`}
<style>${{ html: style }}</style>
<script type="module" src="${script.path}" integrity="${script.integrity}"></script>
</head>
<body>
<header><a class="name" href="/docs">Farthing</a><a class="to-contents" href="#contents">Contents</a>
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
