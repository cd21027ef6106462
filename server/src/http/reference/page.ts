import type { ProblemCode } from '../../problems.ts'
import type { DocsPage } from '../docs/chapters.ts'
import { renderCode } from '../docs/markdown.ts'
import { type Html, html } from '../page/html.ts'
import type { Route } from '../route.ts'
import { type Example, problemsOf, readExamples } from './openapi.ts'

/** /docs/api: what each operation accepts and returns, generated from the routes. */
export function makeReference(routes: readonly Route[], baseUrl: string): DocsPage {
  const examples = readExamples()
  return {
    url: '/docs/api',
    title: 'API reference',
    about: 'Every operation: its parameters, its answers and its errors.',
    headings: routes.map(({ operationId, summary }) => ({ id: operationId, title: summary })),
    source: null,
    render: () => html`<h1>API reference</h1>
<p>Every operation, generated from the server’s own code. As OpenAPI 3.1: <a href="/openapi.json">openapi.json</a>.
Step by step: <a href="/docs/build">Build on the API</a>. The examples are requests that the tests send and the answers
that they get. Bodies are JSON. Errors are <a href="/docs/errors">problems</a> (RFC 9457): branch on their
<code>code</code>.</p>
${routes.map((route) => renderRoute(route, examples[route.operationId] ?? [], baseUrl))}`,
  }
}

function describeKey({ scope }: Route): Html {
  if (scope === null) return html`No key required.`
  const named = scope !== 'any' && html` that has the scope <code>${scope}</code>`
  return html`Requires a key of the store${named}, in <code>X-API-Key</code>.`
}

function renderRoute(route: Route, examples: readonly Example[], baseUrl: string): Html {
  return html`<section>
<h2 id="${route.operationId}">${route.summary}</h2>
<p class="call"><b>${route.method}</b> <code>${route.path.replace(/:(\w+)/g, '{$1}')}</code></p>
${route.description !== undefined && html`<p>${route.description}</p>`}
<p>${describeKey(route)}</p>
${renderFields(
  'Headers',
  Object.entries(route.requestHeaders ?? {}).map(([name, about]) => [name, 'string', '', about]),
)}
${renderFields('Query', fieldsOf(route.query))}
${renderFields('Body', fieldsOf(route.body))}
${Object.entries(route.answers).map(([status, { description, schema }]) =>
  renderFields(`Answer ${status}: ${description}`, fieldsOf(schema)),
)}
${examples.map((example, i) => renderExample(route, example, i, baseUrl))}
<p>Errors: ${joinWithCommas([...problemsOf(route)])}.</p>
</section>
`
}

/** The request is the same in every example of an operation: what differs is what happened before. */
function renderExample(
  route: Route,
  { status, answer, ...request }: Example,
  i: number,
  baseUrl: string,
): Html {
  return html`${
    i === 0 &&
    html`<h3>Example</h3>
${renderCode(renderRequest(route, request, baseUrl), 'sh', 'Request')}`
  }
${renderCode(JSON.stringify(answer, null, 2), 'json', `Answer ${status}`)}`
}

type Request = Pick<Example, 'path' | 'headers' | 'body'>

/** As a curl command. */
function renderRequest({ method, scope }: Route, { path, headers, body }: Request, baseUrl: string): string {
  const words = [
    `curl${method === 'GET' || (method === 'POST' && body) ? '' : ` -X ${method}`} '${baseUrl}${path}'`,
    ...(scope !== null ? ['-H "X-API-Key: $FARTHING_API_KEY"'] : []),
    ...Object.entries(headers ?? {}).map(([name, value]) => `-H '${name}: ${value}'`),
    ...(body ? ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(body, null, 2)}'`] : []),
  ]
  return words.join(' \\\n  ')
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
  const row = ([name, type, need, about]: Field) => {
    const status = html`<span class="status">${type}${need !== '' && `, ${need}`}</span>`
    return html`<tr><td><code>${name}</code></td><td>${status}${about !== '' && html`<br>${about}`}</td></tr>`
  }
  const table = html`<table class="fields"><tbody>${fields.map(row)}</tbody></table>`
  return html`<h3>${title}</h3><div class="wide" tabindex="0">${table}</div>`
}
