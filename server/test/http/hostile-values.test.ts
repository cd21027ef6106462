/**
 * Values that PostgreSQL or a library cannot take: U+0000, times and numbers beyond any range, `0X`. In every parameter and
 * field of the API, and in every route that the API document does not name, none is our bug: each 500 would page an operator.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProblemDetails } from '@farthing/sdk'
import { bodies, named, openTenants } from '../stores/support/tenants.ts'
import { openTestApp } from '../support/app.ts'
import { startDeciding } from '../support/decide.ts'
import { type Answer, assertProblem, type Method, send } from '../support/store.ts'
import { listRoutes } from './console/support/routes.ts'
import { documented, fillPath, operations } from './support/document.ts'

const farthing = await openTestApp(documented)
startDeciding(farthing)
const [tenant = assert.fail('no tenant')] = await openTenants(farthing, 1)
const { shop } = tenant
const own = Object.fromEntries(Object.entries(named).map(([name, of]) => [name, of(tenant)]))

const values = [
  ...['\0', 'a\0b', '\u2028', '\ufffd', '%00', '__proto__', '\\', "'"],
  ...[
    '-1',
    '9'.repeat(60),
    '1e400',
    '9223372036854775808',
    '1-99999999999999999999',
    '99999999999999999999-1',
  ],
  ...[
    '+275760-09-13T00:00:00Z',
    '-271821-04-20T00:00:00Z',
    '10889-01-01T00:00:00Z',
    '2026-02-30',
    '0000-01-01',
  ],
  ...[`0X${'A'.repeat(64)}`, `0X${'a'.repeat(130)}`, `0x${'f'.repeat(64)}`, 'z'.repeat(64)],
]

/** One of each kind, where there are many places for it. */
const few = ['a\0b', '9'.repeat(60), '-271821-04-20T00:00:00Z', `0X${'A'.repeat(64)}`]

/** What depends on the world outside, which these tests don't have. */
const outside: readonly unknown[] = ['unavailable', 'settlement_unavailable', 'rate_unavailable']

function assertNoBug(answer: Answer, about: string): void {
  if (answer.statusCode < 500) return
  const { code } = answer.json<ProblemDetails>()
  assert(outside.includes(code), `${about}: ${answer.statusCode} ${answer.body}`)
}

const call = (method: Method, path: string, body?: unknown, more: Readonly<Record<string, string>> = {}) =>
  send(farthing.app, method, path, body, { 'x-api-key': shop.key, ...more })

test('no value of a parameter of any operation is answered with 500', async () => {
  for (const { id, method, path, parameters } of operations)
    for (const { name, in: place } of parameters)
      for (const value of values) {
        const filled = fillPath(path, place === 'path' ? { ...own, [name]: value } : own)
        const search = place === 'query' ? `?${name}=${encodeURIComponent(value)}` : ''
        if (id === 'revokeKey' && place !== 'path') continue
        const answer = await call(method, filled + search, bodies[id])
        assertNoBug(answer, `${id} ${name}=${JSON.stringify(value)}`)
        if (value.includes('\0') && place === 'query') assertProblem(answer, 422, 'invalid_request')
      }
})

test('no value of a field of any body is answered with 500', async () => {
  const fields = [
    ...new Set([
      ...Object.values(bodies).flatMap((body) => Object.keys(body as object)),
      ...[
        'label',
        'description',
        'note',
        'recipient',
        'amount',
        'since',
        'supportUrl',
        'supportEmail',
        'legalName',
        'legalAddress',
        'taxId',
        'reason',
      ],
      ...[
        'successRedirectUrl',
        'metadata',
        'types',
        'transaction',
        'checkoutId',
        'addresses',
        'overlapSeconds',
      ],
    ]),
  ]
  for (const operation of operations.filter(({ takesBody }) => takesBody)) {
    const path = fillPath(operation.path, { ...own, keyId: `00${'0'.repeat(16)}` })
    for (const field of fields)
      for (const value of few.flatMap((text) => [text, [text], { [text]: text }])) {
        const body = { ...(bodies[operation.id] as object), [field]: value }
        assertNoBug(await call(operation.method, path, body), `${operation.id} ${JSON.stringify(body)}`)
      }
  }
})

test('no signature of a challenge is answered with 500', async () => {
  const rows = await farthing.ctx.db.query<{ id: string }>(
    "select id from wallets where store_id = $1 and family = 'EVM'",
    [shop.id],
  )
  assert(rows[0])
  const path = `/api/v1/stores/${shop.id}/wallets/${rows[0].id}`
  assert.equal((await call('POST', `${path}/challenge`)).statusCode, 201)
  for (const prefix of ['0X', '0x', ''])
    for (const digits of ['A'.repeat(64), 'a'.repeat(130), 'a'.repeat(131), 'zz'.repeat(65), '\0'])
      assertNoBug(await call('POST', `${path}/prove`, { signature: prefix + digits }), `${prefix}${digits}`)
  assertProblem(
    await call('POST', `${path}/prove`, { signature: `0X${'a'.repeat(130)}` }),
    422,
    'invalid_request',
  )
})

test('no value in any route outside the API is answered with 500', async () => {
  const names = [
    'lang',
    'notice',
    'way',
    'option',
    'network',
    'hash',
    'payer',
    'address',
    'q',
    'page',
    'formToken',
  ]
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  for (const { method, path } of listRoutes(farthing.app).filter(
    (route) => !route.path.startsWith('/api/') && !route.path.endsWith('/live'),
  ))
    for (const value of values) {
      const text = encodeURIComponent(value)
      const all = names.map((name) => `${name}=${text}`).join('&')
      const known = path.replace(':checkoutId', tenant.checkoutId).replace(/:\w+|\*/, 'x')
      const body = method === 'POST' ? all : undefined
      assertNoBug(await call(method, path.replaceAll(/:\w+|\*/g, text), body, form), `${path} ${text}`)
      assertNoBug(await call(method, `${known}?${all}`, body, form), `${path}?${text}`)
    }
})
