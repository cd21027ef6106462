import type { ProblemCode } from '../../problems.ts'
import type { DocsPage } from '../docs/chapters.ts'
import { type Html, html } from '../page/html.ts'
import type { Route } from '../route.ts'
import { problemsOf } from './openapi.ts'

/** /docs/api: what each operation accepts and returns, generated from the routes. */
export function makeReference(routes: readonly Route[]): DocsPage {
  return {
    url: '/docs/api',
    title: 'API reference',
    about: 'Every operation: its parameters, its answers and its errors.',
    headings: routes.map(({ operationId, summary }) => ({ id: operationId, title: summary })),
    source: null,
    render: () => html`<h1>API reference</h1>
<p>Every operation, generated from the server’s own code. As OpenAPI 3.1: <a href="/openapi.json">openapi.json</a>.
With runnable examples: <a href="/docs/api/guide">the guide</a>. Bodies are JSON. Errors are
<a href="/docs/errors">problems</a> (RFC 9457): branch on their <code>code</code>.</p>
${routes.map(renderRoute)}`,
  }
}

function renderRoute(route: Route): Html {
  return html`<section>
<h2 id="${route.operationId}">${route.summary}</h2>
<p class="call"><b>${route.method}</b> <code>${route.path.replace(/:(\w+)/g, '{$1}')}</code></p>
${route.description !== undefined && html`<p>${route.description}</p>`}
<p>${route.isKeyed ? html`Requires the store’s key in <code>X-API-Key</code>.` : 'No key required.'}</p>
${renderFields(
  'Headers',
  Object.entries(route.requestHeaders ?? {}).map(([name, about]) => [name, 'string', '', about]),
)}
${renderFields('Query', fieldsOf(route.query))}
${renderFields('Body', fieldsOf(route.body))}
${Object.entries(route.answers).map(([status, answer]) => renderFields(`Answer ${status}: ${answer.description}`, fieldsOf(answer.schema)))}
<p>Errors: ${joinWithCommas([...problemsOf(route)])}.</p>
</section>
`
}

function joinWithCommas(codes: readonly ProblemCode[]): Html[] {
  return codes.map((code, i) => html`${i > 0 && ', '}<a href="/docs/errors/${code}"><code>${code}</code></a>`)
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

/** A schema's fields, with lists and unions expanded one level. openapi.json has the rest. */
function fieldsOf(schema: Schema | undefined): Field[] {
  return Object.entries(schema?.properties ?? {}).map(([name, field]) => [
    name,
    typeOf(field),
    schema?.required?.includes(name) ? 'required' : 'optional',
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

function renderFields(title: string, fields: readonly Field[]): Html | null {
  if (fields.length === 0) return null
  return html`<h3>${title}</h3><div class="wide" tabindex="0"><table class="fields"><tbody>${fields.map(
    ([name, type, need, about]) =>
      html`<tr><td><code>${name}</code></td><td><span class="status">${type}${need !== '' && `, ${need}`}</span>${about !== '' && html`<br>${about}`}</td></tr>`,
  )}</tbody></table></div>`
}
