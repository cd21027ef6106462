import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { openApiFile } from '../../support/generated.ts'
import type { Answer, Method } from '../../support/store.ts'

type Parameter = { name: string; in: string; required: boolean; schema: object }
type Content = Record<string, { schema: object }>
type Response = { description: string; headers?: Record<string, object>; content?: Content }
type Described = {
  operationId: string
  security: Record<string, string[]>[]
  parameters: Parameter[]
  requestBody?: { content: Content }
  responses: Record<string, Response>
}

export type Operation = {
  readonly id: string
  readonly method: Method
  /** With {parameters}. */
  readonly path: string
  readonly isKeyed: boolean
  /** What a key must be allowed to do; null if any key will do. */
  readonly scope: string | null
  readonly parameters: readonly Parameter[]
  readonly takesBody: boolean
  readonly responses: Readonly<Record<string, Response>>
}

/** The committed API document: the tests' only source for which answers the API may give. */
export const document = JSON.parse(readFileSync(openApiFile, 'utf8')) as {
  openapi: string
  info: Record<string, unknown>
  paths: Record<string, Record<string, Described>>
  components: { schemas: Record<string, object>; securitySchemes: Record<string, object> }
}

export const operations: readonly Operation[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    id: operation.operationId,
    method: method.toUpperCase() as Method,
    path,
    isKeyed: operation.security.length > 0,
    scope: operation.security[0]?.storeKey?.[0] ?? null,
    parameters: operation.parameters,
    takesBody: operation.requestBody !== undefined,
    responses: operation.responses,
  })),
)

/** Settings with which the application serves the paths that the document names. */
export const documented = { CHECKOUT_PAGE_URL: 'https://farthing.example/pay' } as const

const ajv = formats.default(new Ajv2020({ strict: false, allErrors: true }))
ajv.addSchema(document, 'document')
const validators = new Map<string, ValidateFunction>()

/** Fails unless the document allows this answer to this operation: status, content type, and every field of the body. */
export function assertDocumented(operation: Operation, answer: Answer, about = ''): void {
  const status = String(answer.statusCode)
  const name = `${operation.id} ${status} ${about}: ${answer.body.slice(0, 300)}`
  const response = operation.responses[status]
  assert(response, `not documented: ${name}`)
  const type = String(answer.headers['content-type']).split(';')[0] ?? ''
  const [documentedType = ''] = Object.keys(response.content ?? {})
  assert.equal(type, documentedType, name)
  const path = operation.path.replaceAll('/', '~1')
  const method = operation.method.toLowerCase()
  const reference = `document#/paths/${path}/${method}/responses/${status}/content/${type.replace('/', '~1')}/schema`
  let validate = validators.get(reference)
  if (!validate) {
    validate = ajv.compile({ $ref: encodeURI(reference) })
    validators.set(reference, validate)
  }
  assert(validate(answer.json()), `${name} ${ajv.errorsText(validate.errors)}`)
}

/** The path with its parameters filled in, each encoded. */
export function fillPath(path: string, values: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ''))
}
