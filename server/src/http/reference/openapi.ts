import { readFileSync } from 'node:fs'
import { type ProblemCode, problems } from '../../problems.ts'
import { Checkout, CreateCheckout, StoreCheckout } from '../api/checkouts.ts'
import { Event } from '../api/events.ts'
import { ApiKey, ApiKeySecret, CreateApiKey, RotateApiKey } from '../api/keys.ts'
import { CreateLink, InvoiceLine, Link, UpdateLink } from '../api/links.ts'
import { Currency, Network } from '../api/networks.ts'
import { TermsSchema } from '../api/pay.ts'
import { CheckoutPayment, Payment, PaymentHint } from '../api/payments.ts'
import { CreateRefund, NameTransaction, PreparedRefund, PresentRefund, Refund } from '../api/refunds.ts'
import { Actor, ProblemDetails } from '../api/shapes.ts'
import { FinalityRule, Store, UpdateStore } from '../api/store.ts'
import { ProveWallet, RegisterWallet, UpdateWallet, Wallet, WalletChallenge } from '../api/wallets.ts'
import {
  CreateWebhookEndpoint,
  Delivery,
  DeliveryAttempt,
  Redeliver,
  Redelivered,
  UpdateWebhookEndpoint,
  WebhookEndpoint,
} from '../api/webhooks.ts'
import type { Route } from '../route.ts'

/** Schemas that the document lists by name. */
const components = {
  Checkout,
  CheckoutPayment,
  PaymentHint,
  Payment,
  StoreCheckout,
  CreateCheckout,
  Link,
  CreateLink,
  UpdateLink,
  InvoiceLine,
  Refund,
  CreateRefund,
  PreparedRefund,
  PresentRefund,
  NameTransaction,
  FinalityRule,
  Store,
  UpdateStore,
  RegisterWallet,
  UpdateWallet,
  WalletChallenge,
  ProveWallet,
  Wallet,
  ApiKey,
  ApiKeySecret,
  CreateApiKey,
  RotateApiKey,
  Network,
  Currency,
  PaymentRequired: TermsSchema,
  ProblemDetails,
  Event,
  Actor,
  WebhookEndpoint,
  CreateWebhookEndpoint,
  UpdateWebhookEndpoint,
  Delivery,
  DeliveryAttempt,
  Redeliver,
  Redelivered,
}

/** Problems that any operation can return. */
const anyRoute: readonly ProblemCode[] = [
  'bad_request',
  'wrong_cell',
  'rate_limited',
  'internal_error',
  'unavailable',
]
const anyKeyedRoute: readonly ProblemCode[] = ['invalid_api_key', 'address_not_allowed']
const anyInput: readonly ProblemCode[] = ['invalid_request']
const anyBody: readonly ProblemCode[] = ['malformed_json', 'unsupported_media_type', 'body_too_large']

/** The OpenAPI 3.1 document of the mounted routes. Their schemas are already JSON Schema and are used unchanged. */
export function describeApi(routes: readonly Route[], baseUrl: string): object {
  const examples = readExamples()
  return {
    openapi: '3.1.0',
    info: {
      title: 'Farthing',
      version: '1',
      description:
        'A self-hosted crypto checkout. Within v1, fields, event types and error codes are only ever added.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: baseUrl }],
    paths: describePaths(routes, examples),
    components: {
      schemas: Object.fromEntries(
        Object.entries(components).map(([name, schema]) => [name, withReferences(schema, name)]),
      ),
      securitySchemes: { storeKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' } },
    },
  }
}

function describePaths(routes: readonly Route[], examples: Examples): Record<string, Record<string, object>> {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: describeOperation(route, examples[route.operationId] ?? []),
    }
  }
  return paths
}

function describeOperation(route: Route, examples: readonly Example[]): object {
  const body = examples.find(({ status }) => status < 300)?.body
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(route.description && { description: route.description }),
    security: route.scope === null ? [] : [{ storeKey: route.scope === 'any' ? [] : [route.scope] }],
    parameters: describeParameters(route),
    ...(route.body && {
      requestBody: {
        required: route.isBodyOptional !== true,
        content: {
          'application/json': { schema: withReferences(route.body), ...(body && { example: body }) },
        },
      },
    }),
    responses: { ...describeAnswers(route, examples), ...describeProblems(route) },
  }
}

function describeParameters(route: Route): object[] {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const query = route.query as { properties?: Record<string, { description?: string }> } | undefined
  const inQuery = Object.entries(query?.properties ?? {}).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: false,
    ...(description && { description }),
    schema,
  }))
  const headers = Object.entries(route.requestHeaders ?? {}).map(([name, description]) => ({
    name,
    in: 'header',
    required: false,
    description,
    schema: { type: 'string' },
  }))
  return [...inPath, ...inQuery, ...headers]
}

function describeAnswers(route: Route, examples: readonly Example[]): Record<string, object> {
  return Object.fromEntries(
    Object.entries(route.answers).map(([status, { description, schema, stream, headers }]) => [
      status,
      {
        description,
        ...(headers && {
          headers: Object.fromEntries(
            Object.entries(headers).map(([name, about]) => [
              name,
              { description: about, schema: { type: 'string' } },
            ]),
          ),
        }),
        content: {
          'application/json': { schema: withReferences(schema), ...answerOf(examples, status) },
          ...(stream && {
            [stream.contentType]: { schema: { type: 'string', description: stream.description } },
          }),
        },
      },
    ]),
  )
}

function answerOf(examples: readonly Example[], status: string): { readonly example?: object } {
  const found = examples.find((example) => String(example.status) === status)
  return found ? { example: found.answer } : {}
}

/** Every problem that an operation can return. */
export function problemsOf(route: Route): ReadonlySet<ProblemCode> {
  const takesInput = route.body !== undefined || route.query !== undefined
  return new Set([
    ...anyRoute,
    ...(route.scope === null ? [] : anyKeyedRoute),
    ...(route.scope === null || route.scope === 'any' ? [] : (['scope_required'] as const)),
    ...(takesInput ? anyInput : []),
    // The payer's endpoints read a body only to ignore it.
    ...(route.method === 'GET' ? [] : route.scope !== null ? anyBody : (['body_too_large'] as const)),
    ...route.problems,
  ])
}

function describeProblems(route: Route): Record<string, object> {
  const byStatus = Map.groupBy(problemsOf(route), (code) => problems[code][0])
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      status,
      {
        description: group.map((code) => `\`${code}\`: ${problems[code][1]}.`).join(' '),
        content: { 'application/problem+json': { schema: withReferences(ProblemDetails) } },
      },
    ]),
  )
}

const names = new Map<unknown, string>(Object.entries(components).map(([name, schema]) => [schema, name]))

/** Replaces every named schema inside a schema by a reference. */
function withReferences(schema: unknown, self?: string): unknown {
  const name = names.get(schema)
  if (name !== undefined && name !== self) return { $ref: `#/components/schemas/${name}` }
  if (Array.isArray(schema)) return schema.map((item) => withReferences(item))
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, withReferences(value)]))
}

/** A request and its answer, as a test got it. */
export type Example = {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
  readonly status: number
  readonly answer: object
}

/** By operation. */
export type Examples = Readonly<Record<string, readonly Example[]>>

const file = new URL('../../../../docs/api/examples.json', import.meta.url)

/** The committed examples. An operation that has none yet is described without examples. */
export function readExamples(): Examples {
  return JSON.parse(readFileSync(file, 'utf8')) as Examples
}
