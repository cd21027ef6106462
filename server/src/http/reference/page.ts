import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Context } from '../../context.ts'
import { Problem, type ProblemCode, problems } from '../../problems.ts'
import type { Route } from '../route.ts'
import { describeApi } from './openapi.ts'

/** The API's description for people and programs: /openapi.json, /docs/api, and a page for each problem's `type`. */
export function mountReference(app: FastifyInstance, ctx: Context, routes: readonly Route[]): void {
  const openapi = JSON.stringify(describeApi(routes, ctx.config.baseUrl))
  const reference = page('Farthing API', renderReference(routes))
  app.get('/openapi.json', (_request, reply) => reply.type('application/json').send(openapi))
  app.get('/docs/api', (_request, reply) => sendPage(reply, reference))
  app.get('/docs/errors/:code', (request, reply) => {
    const { code } = request.params as { code: string }
    if (!Object.hasOwn(problems, code)) throw new Problem('not_found', 'There is no problem with this code.')
    return sendPage(reply, page(code, renderProblemPage(code as ProblemCode)))
  })
}

function renderReference(routes: readonly Route[]): string {
  const contents = routes.map(
    ({ operationId, summary }) => `<li><a href="#${operationId}">${escapeHtml(summary)}</a></li>`,
  )
  return `<h1>Farthing API</h1>
<p>The same in OpenAPI 3.1: <a href="/openapi.json">openapi.json</a>. Bodies are JSON. Errors are
<a href="#problems">problems</a> (RFC 9457): decide by their <code>code</code>.</p>
<nav><ul>${contents.join('')}</ul></nav>
${routes.map(renderRoute).join('\n')}
<h2 id="problems">Problems</h2>
<table><thead><tr><th>Code</th><th>Status</th><th>Meaning</th><th>What to do</th></tr></thead><tbody>
${Object.entries(problems)
  .map(
    ([code, [status, title, advice]]) =>
      `<tr><td><a href="/docs/errors/${code}"><code>${code}</code></a></td><td>${status}</td><td>${escapeHtml(title)}</td><td>${escapeHtml(advice)}</td></tr>`,
  )
  .join('\n')}
</tbody></table>`
}

function renderRoute(route: Route): string {
  return `<section id="${route.operationId}">
<h2>${escapeHtml(route.summary)}</h2>
<p class="call"><b>${route.method}</b> <code>${escapeHtml(route.path.replace(/:(\w+)/g, '{$1}'))}</code></p>
${route.description ? `<p>${escapeHtml(route.description)}</p>` : ''}
<p>${route.isKeyed ? 'Needs the store’s key in <code>X-API-Key</code>.' : 'Needs no key.'}</p>
${renderFields(
  'Headers',
  Object.entries(route.requestHeaders ?? {}).map(([name, about]) => [name, 'string', '', about]),
)}
${renderFields('Query', fieldsOf(route.query))}
${renderFields('Body', fieldsOf(route.body))}
${Object.entries(route.answers)
  .map(([status, answer]) => renderFields(`Answer ${status}: ${answer.description}`, fieldsOf(answer.schema)))
  .join('\n')}
</section>`
}

type Field = readonly [name: string, type: string, need: string, about: string]
type Schema = {
  type?: string
  properties?: Record<string, Schema>
  required?: readonly string[]
  enum?: readonly unknown[]
  const?: unknown
  anyOf?: readonly Schema[]
  items?: Schema
  description?: string
}

/** Fields, one level of lists and unions opened: enough to read, the document has the rest. */
function fieldsOf(schema: Schema | undefined): Field[] {
  return Object.entries(schema?.properties ?? {}).map(([name, field]) => [
    name,
    typeOf(field),
    schema?.required?.includes(name) ? 'always' : 'optional',
    field.description ?? field.anyOf?.find(({ description }) => description)?.description ?? '',
  ])
}

function typeOf(schema: Schema): string {
  if (schema.enum) return schema.enum.join(' | ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' | ')
  if (schema.type === 'array') return `list of ${schema.items ? typeOf(schema.items) : 'anything'}`
  if (schema.properties) return `{ ${Object.keys(schema.properties).join(', ')} }`
  return schema.type ?? 'any'
}

function renderFields(title: string, fields: readonly Field[]): string {
  if (fields.length === 0) return ''
  const rows = fields.map(
    ([name, type, need, about]) =>
      `<tr><td><code>${escapeHtml(name)}</code></td><td>${escapeHtml(type)}</td><td>${need}</td><td>${escapeHtml(about)}</td></tr>`,
  )
  return `<h3>${escapeHtml(title)}</h3><table><tbody>${rows.join('\n')}</tbody></table>`
}

function renderProblemPage(code: ProblemCode): string {
  const [status, title, advice] = problems[code]
  return `<h1>${escapeHtml(title)}</h1><p>Status ${status}, code <code>${code}</code>.</p><p>${escapeHtml(advice)}</p>
<p><a href="/docs/api#problems">All problems</a></p>`
}

const style = `:root{color-scheme:light dark;--line:light-dark(#d8d8d2,#3a3a38);--soft:light-dark(#f5f5f0,#1d1d1c)}
body{font:16px/1.55 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:2rem 1.25rem 6rem}
h1{font-size:1.9rem}h2{margin-top:3rem;border-top:1px solid var(--line);padding-top:1.5rem}h3{font-size:1rem;margin-bottom:.25rem}
code{font:0.92em ui-monospace,monospace;overflow-wrap:anywhere}.call{background:var(--soft);padding:.6rem .9rem;border-radius:.5rem}
table{width:100%;border-collapse:collapse;font-size:.94rem}td,th{text-align:left;vertical-align:top;padding:.35rem .6rem .35rem 0;border-bottom:1px solid var(--line)}
nav ul{columns:2;padding-left:1.1rem}@media(max-width:40rem){nav ul{columns:1}}`
const styleHash = createHash('sha256').update(style).digest('base64')

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${escapeHtml(title)}</title><style>${style}</style></head><body>${body}</body></html>`
}

function sendPage(reply: FastifyReply, html: string): FastifyReply {
  return reply
    .header(
      'content-security-policy',
      `default-src 'none'; style-src 'sha256-${styleHash}'; frame-ancestors 'none'; base-uri 'none'`,
    )
    .type('text/html; charset=utf-8')
    .send(html)
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
