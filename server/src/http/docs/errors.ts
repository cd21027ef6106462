import { type ProblemCode, problems } from '../../problems.ts'
import { html } from '../page/html.ts'
import { problemsOf } from '../reference/openapi.ts'
import type { Route } from '../route.ts'
import type { DocsPage } from './chapters.ts'

const codes = Object.keys(problems) as ProblemCode[]

/** /docs/errors and a page for each code, which a problem's `type` names. */
export function makeErrorPages(routes: readonly Route[], baseUrl: string): DocsPage[] {
  return [makeIndex(), ...codes.map((code) => makeErrorPage(code, routes, baseUrl))]
}

function makeIndex(): DocsPage {
  return {
    url: '/docs/errors',
    title: 'Errors',
    about: 'Every error code: its status, what it means, and what to do next.',
    headings: [],
    source: null,
    body: html`<h1>Errors</h1>
<p>Errors are <code>application/problem+json</code> (RFC 9457). Decide by <code>code</code>, which is stable. Log
<code>detail</code>, which says what was wrong this time, and <code>requestId</code>, which finds it in our logs.
<code>advice</code> says what to do next, and <code>type</code> is the address of the code’s page here.</p>
<p>A 4xx changed nothing. After a 5xx it is not known whether the request took effect: repeat it, the same, with the same
<code>Idempotency-Key</code> or the same payment. <code>Retry-After</code> says when, where there is one.</p>
<p>402 is not an error: it is the answer to “how do I pay?”, and its body says how. Why a payment was refused stands in
its <code>error</code>: <a href="/docs/x402#reasons">the reasons</a>.</p>
<div class="wide" tabindex="0"><table><thead><tr><th>Code</th><th>Status</th><th>Meaning</th><th>What to do</th></tr></thead><tbody>
${codes.map((code) => {
  const [status, title, advice] = problems[code]
  return html`<tr><td><a href="/docs/errors/${code}"><code>${code}</code></a></td><td>${status}</td><td>${title}</td><td>${advice}</td></tr>`
})}
</tbody></table></div>`,
  }
}

function makeErrorPage(code: ProblemCode, routes: readonly Route[], baseUrl: string): DocsPage {
  const [status, title, advice] = problems[code]
  const example = {
    type: `${baseUrl}/docs/errors/${code}`,
    title,
    status,
    detail: '…',
    advice,
    code,
    requestId: 'req_…',
  }
  const givers = routes.filter((route) => problemsOf(route).has(code))
  return {
    url: `/docs/errors/${code}`,
    title,
    about: advice,
    headings: [],
    source: null,
    body: html`<h1>${title}</h1>
<p class="status">Status ${status}, code <code>${code}</code></p>
<h2>What to do</h2>
<p>${advice}</p>
<h2>Did it take effect?</h2>
<p>${effectOf(code)}</p>
<h2>What it looks like</h2>
<p>In <code>detail</code> stands what was wrong this time.</p>
<figure class="code"><pre tabindex="0"><code>${JSON.stringify(example, null, 2)
      .split('\n')
      .map(
        (line) => html`${line}
`,
      )}</code></pre></figure>
${
  givers.length > 0 &&
  html`<h2>Who says it</h2>
<ul>${givers.map(({ operationId, summary, method, path }) => html`<li><a href="/docs/api#${operationId}">${summary}</a>: <code>${method} ${path.replace(/:(\w+)/g, '{$1}')}</code></li>`)}</ul>`
}
<p><a href="/docs/errors">All errors</a></p>`,
  }
}

function effectOf(code: ProblemCode): string {
  if (code === 'rate_unavailable') return 'No. No checkout was created.'
  if (code === 'settlement_unavailable') return 'No. The payment was not taken, and nothing was charged.'
  if (code === 'payment_not_applied')
    return 'The money arrived, but it did not complete this checkout. It is on the store’s list of payments.'
  return problems[code][0] >= 500
    ? 'It is not known. A payment, a read, or a request with the same Idempotency-Key can be repeated and gives the answer; before you repeat another, read what is there.'
    : 'No. The request changed nothing.'
}
