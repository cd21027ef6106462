import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { problems } from '../../../src/problems.ts'
import { openTestApp } from '../../support/app.ts'
import { send } from '../../support/store.ts'
import { document, documented, operations } from '../support/document.ts'

const farthing = await openTestApp(documented)

test('the served document is the committed one', async () => {
  const answer = await send(farthing.app, 'GET', '/openapi.json')
  assert.deepEqual(answer.json(), document)
})

test('the type URL of every problem leads to a page about it', async () => {
  for (const code of Object.keys(problems)) {
    const page = await send(farthing.app, 'GET', `/docs/errors/${code}`)
    assert.equal(page.statusCode, 200, code)
    assert.match(String(page.headers['content-type']), /^text\/html/)
  }
  for (const none of ['none', '__proto__', 'constructor', '%00'])
    assert.equal((await send(farthing.app, 'GET', `/docs/errors/${none}`)).statusCode, 404)
})

test('the document has the fixed fields of OpenAPI 3.1 and no others', () => {
  assertFields(document, ['openapi', 'info', 'paths', 'components'], ['servers', 'security', 'tags'])
  assert.match(document.openapi, /^3\.1\.\d+$/)
  assertFields(document.info, ['title', 'version'], ['description', 'license', 'contact', 'summary'])
  for (const [path, methods] of Object.entries(document.paths)) {
    assert.match(path, /^\//)
    for (const [method, operation] of Object.entries(methods)) {
      assert(['get', 'post', 'patch', 'put', 'delete'].includes(method), method)
      assertFields(
        operation,
        ['operationId', 'responses', 'security', 'parameters'],
        ['summary', 'description', 'requestBody'],
      )
      assert(method !== 'get' || !('requestBody' in operation), 'a GET has no body')
      for (const requirement of operation.security)
        for (const name of Object.keys(requirement)) assert(name in document.components.securitySchemes, name)
      for (const [status, response] of Object.entries(operation.responses)) {
        assert.match(status, /^[1-5]\d\d$/)
        assertFields(response, ['description'], ['headers', 'content'])
        for (const [type, media] of Object.entries(response.content ?? {})) {
          assert.match(type, /^[\w.+-]+\/[\w.+-]+$/)
          assertFields(media, ['schema'], ['example'])
        }
        for (const header of Object.values(response.headers ?? {}))
          assertFields(header, ['schema'], ['description', 'required'])
      }
    }
  }
})

test('the declared path parameters are exactly those in the path, and no parameter is declared twice', () => {
  for (const { id, path, parameters } of operations) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const declared = parameters.filter((parameter) => parameter.in === 'path')
    assert.deepEqual(declared.map(({ name }) => name).sort(), inPath.sort(), id)
    assert(declared.every(({ required }) => required))
    const keys = parameters.map((parameter) => `${parameter.in} ${parameter.name}`)
    assert.equal(new Set(keys).size, keys.length, id)
    for (const parameter of parameters) {
      assertFields(parameter, ['name', 'in', 'schema'], ['required', 'description'])
      assert(['path', 'query', 'header'].includes(parameter.in), parameter.in)
      assert(!/^(accept|content-type|authorization)$/i.test(parameter.name), 'OpenAPI ignores this header')
    }
  }
})

test('every reference resolves, every named schema is used, and every schema is valid JSON Schema 2020-12', () => {
  const text = JSON.stringify(document)
  const references = new Set([...text.matchAll(/"\$ref":"([^"]*)"/g)].map(([, reference]) => reference ?? ''))
  for (const reference of references) {
    assert.match(reference, /^#\/components\/schemas\/\w+$/)
    assert(Object.hasOwn(document.components.schemas, reference.split('/').at(-1) ?? ''), reference)
  }
  for (const name of Object.keys(document.components.schemas))
    assert(references.has(`#/components/schemas/${name}`), `${name} is not used`)
  const ajv = new Ajv2020({ strict: false })
  let checked = 0
  visit(document, (value) => {
    if (!('schema' in value)) return
    assert(ajv.validateSchema(value.schema as object), ajv.errorsText())
    checked++
  })
  for (const schema of Object.values(document.components.schemas))
    assert(ajv.validateSchema(schema), ajv.errorsText())
  assert(checked > 100)
})

function assertFields(value: object, needed: readonly string[], allowed: readonly string[] = []): void {
  const names = Object.keys(value)
  for (const name of needed) assert(names.includes(name), `${name} is missing`)
  for (const name of names)
    assert(needed.includes(name) || allowed.includes(name) || name.startsWith('x-'), `${name} is not allowed`)
}

function visit(value: unknown, see: (value: object) => void): void {
  if (typeof value !== 'object' || value === null) return
  see(value)
  for (const child of Object.values(value)) visit(child, see)
}
