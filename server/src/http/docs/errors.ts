import { type ProblemCode, problems } from '../../problems.ts'
import { type Html, html } from '../page/html.ts'
import { problemsOf } from '../reference/openapi.ts'
import type { Route } from '../route.ts'
import type { DocsPage } from './chapters.ts'
import { renderCode } from './markdown.ts'

const codes = Object.keys(problems) as ProblemCode[]

/** /docs/errors, and one page per code: the URL in a problem's `type`. */
export function makeErrorPages(routes: readonly Route[], baseUrl: string): DocsPage[] {
  return [makeIndex(), ...codes.map((code) => makeErrorPage(code, routes, baseUrl))]
}

function makeIndex(): DocsPage {
  return {
    url: '/docs/errors',
    title: 'Errors',
    about: 'Every error code, with its status, its meaning and what to do next.',
    headings: [],
    source: null,
    render: () => html`<h1>Errors</h1>
<p>Errors are <code>application/problem+json</code> (RFC 9457). Branch on <code>code</code>, which is stable. Log
<code>detail</code>, which says what went wrong, and <code>requestId</code>, which identifies the request in the
server’s logs. <code>advice</code> says what to do next, and <code>type</code> is the URL of the code’s page here.</p>
<p>A request that gets a 4xx changed nothing. A request that gets a 5xx may or may not have taken effect: repeat it
unchanged, with the same <code>Idempotency-Key</code> or the same payment. If the answer has <code>Retry-After</code>,
wait that many seconds first.</p>
<p>402 is not an error. It is the answer to “how do I pay?”, and its body says how. If a payment was refused, its
<code>error</code> says why: <a href="/docs/x402#reasons">the reasons</a>.</p>
<div class="wide" tabindex="0"><table>
<thead><tr><th>Code</th><th>Status</th><th>Meaning</th><th>What to do</th></tr></thead><tbody>
${codes.map((code) => {
  const [status, title, advice] = problems[code]
  const link = html`<a href="/docs/errors/${code}"><code>${code}</code></a>`
  return html`<tr><td>${link}</td><td>${status}</td><td>${title}</td><td>${advice}</td></tr>`
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
    ...members[code]?.example,
  }
  const givers = routes
    .filter((route) => problemsOf(route).has(code))
    .map(({ operationId, summary, method, path }) => {
      const call = html`<code>${method} ${path.replace(/:(\w+)/g, '{$1}')}</code>`
      return html`<li><a href="/docs/api#${operationId}">${summary}</a>: ${call}</li>`
    })
  return {
    url: `/docs/errors/${code}`,
    title,
    about: advice,
    headings: [],
    source: null,
    render: () => html`<h1>${title}</h1>
<p class="status">Status ${status}, code <code>${code}</code></p>
<h2>What to do</h2>
<p>${advice}</p>
<h2>Did it take effect?</h2>
<p>${effectOf(code)}</p>
<h2>What it looks like</h2>
<p><code>detail</code> says what went wrong.${members[code] ? html` ${members[code].about}` : null}</p>
${renderCode(JSON.stringify(example, null, 2), 'json')}
${
  givers.length > 0 &&
  html`<h2>Where it occurs</h2>
<ul>${givers}</ul>`
}
<p><a href="/docs/errors">All errors</a></p>`,
  }
}

/** Fields that only the problems of one code have. */
const members: Partial<Record<ProblemCode, { readonly about: Html; readonly example: object }>> = {
  invalid_request: {
    about: html`<code>errors</code> lists every value that is wrong, at most 20: <code>pointer</code> is a JSON pointer
into the body (<code>/priceAmount</code>), or the name of the parameter or header; <code>code</code> is the rule that
the value breaks; <code>detail</code> says what is wrong with it.`,
    example: {
      errors: [
        { pointer: '/priceAmount', code: 'type', detail: 'must be a string' },
        { pointer: '/orderId', code: 'required', detail: 'is required' },
      ],
    },
  },
  scope_required: {
    about: html`<code>scope</code> is the one that the key lacks.`,
    example: { scope: 'refunds:write' },
  },
  payment_not_final: {
    about: html`<code>expectedAt</code> is when the payment should be final at the latest.`,
    example: { expectedAt: '2026-11-18T12:20:00.000Z' },
  },
  refund_exceeds_payment: {
    about: html`<code>left</code> is what can still be refunded, in the token’s smallest unit.`,
    example: { left: '2500000' },
  },
  payment_not_applied: {
    about: html`<code>payment</code> is the payment that arrived.`,
    example: { payment: { id: 'pay_…', disposition: 'late', payer: '0x…', amount: '12500000' } },
  },
  log_restarted: {
    about: html`<code>resumeAfter</code> is the cursor to continue from.`,
    example: { resumeAfter: '2-0' },
  },
  log_truncated: {
    about: html`No event with the number <code>firstSequence</code> or a higher one was deleted.`,
    example: { firstSequence: 1041 },
  },
}

function effectOf(code: ProblemCode): string {
  if (code === 'rate_unavailable') return 'No. No checkout was created.'
  if (code === 'settlement_unavailable') return 'No. The payment was not claimed, and nothing was charged.'
  if (code === 'cell_unavailable') return 'No. The request reached no process of the cell.'
  if (code === 'payment_not_applied')
    return 'Yes: the money arrived. It did not complete this checkout. The store sees it in its list of payments.'
  return problems[code][0] >= 500
    ? 'Possibly. Payments, reads and requests with an Idempotency-Key can be repeated safely, and the repeat gives the outcome. Before you repeat any other request, read the current state.'
    : 'No. The request changed nothing.'
}
