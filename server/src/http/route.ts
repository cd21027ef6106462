import { hash } from 'node:crypto'
import type { Actor, Scope } from '@farthing/sdk'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import type { IdempotencyKey } from '../checkouts/create.ts'
import type { Context } from '../context.ts'
import type { StoreId } from '../ids.ts'
import { invalid, type Problem, type ProblemCode } from '../problems.ts'
import type { Caller } from '../stores/authenticate.ts'

/**
 * One operation of the API. This value mounts it, validates its requests and describes it in the OpenAPI document: its
 * schemas are JSON Schema, and a schema that differs from the SDK's type does not compile.
 */
export type Route = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** With :parameters. */
  readonly path: string
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  /** The scope that the caller's key needs. `any`: every key of the store may call it. null: no key is needed. */
  readonly scope: Scope | 'any' | null
  /**
   * Whether the caller is read from the database instead of a cache that may be a second old. The default is true unless
   * the method is GET.
   */
  readonly needsFreshCaller?: boolean
  /**
   * For operations that protect a store. They don't wait behind the store's other changes, and the limit for stores
   * without a proven wallet doesn't apply to them.
   */
  readonly isUrgent?: boolean
  readonly query?: TSchema
  readonly body?: TSchema
  /** A request without a body counts as one with an empty object. */
  readonly isBodyOptional?: boolean
  readonly requestHeaders?: Readonly<Record<string, string>>
  readonly answers: Readonly<Record<number, Answer>>
  /** Problems specific to this operation, in addition to those that any operation can return. */
  readonly problems: readonly ProblemCode[]
  /** `ctx` commits nothing if the caller's key has been revoked meanwhile. */
  readonly handle: (ctx: Context, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>
}

type Answer = {
  readonly description: string
  readonly schema: TSchema
  /** The same content as a stream, for clients that ask for it. */
  readonly stream?: { readonly contentType: string; readonly description: string }
  readonly headers?: Readonly<Record<string, string>>
}

/** A request, as the handler's `work` receives it. */
export type ApiCall<Input> = {
  readonly ctx: Context
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly now: Date
  /** The query of a GET; for other methods the body. */
  readonly input: Input
  /** A part of the path. */
  readonly param: (name: string) => string
  /** The key's holder. Reading these throws if the route has no scope. */
  readonly caller: Caller
  readonly storeId: StoreId
  readonly actor: Actor
}

/** Answers with the JSON of `work`'s result, unless `work` has sent an answer itself. */
export function answer<Input = unknown>(
  status: number,
  work: (call: ApiCall<Input>) => Promise<object>,
): Route['handle'] {
  return async (ctx, request, reply) => {
    const { method, query, body } = request
    const result = await work({
      ctx,
      request,
      reply,
      now: ctx.now(),
      input: (method === 'GET' ? query : (body ?? {})) as Input,
      param: (name) => (request.params as Record<string, string>)[name] ?? '',
      get caller() {
        return callerOf(request)
      },
      get storeId() {
        return callerOf(request).holder.store.id
      },
      get actor() {
        return callerOf(request).actor
      },
    })
    return result === reply ? reply : sendJson(reply, status, result)
  }
}

export function sendJson(reply: FastifyReply, status: number, value: unknown): FastifyReply {
  return sendText(reply, status, JSON.stringify(value))
}

/** Sends text that is already JSON, byte for byte. */
export function sendText(reply: FastifyReply, status: number, json: string): FastifyReply {
  return reply.code(status).header('content-type', 'application/json; charset=utf-8').send(json)
}

/** The page size if the request doesn't set one. */
export const limitDefault = 20

export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller)
    throw new Error(`${request.routeOptions.url} was called without an API key: set a scope on its route`)
  return request.caller
}

/** A page of a list. If another page follows, `found` has one item more than the limit. */
export function cutPage<Item extends { readonly id: string }>(found: readonly Item[], limit: number) {
  const data = found.slice(0, limit)
  return { data, nextCursor: found.length > limit ? (data.at(-1)?.id ?? null) : null }
}

export function invalidCursor(): Problem {
  return invalid({ pointer: 'cursor', code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
}

/** The period of a list: from `createdFrom` until just before `createdBefore`. */
export function timesOf(query: { readonly createdFrom?: string; readonly createdBefore?: string }) {
  const { createdFrom, createdBefore } = query
  return {
    createdFrom: createdFrom === undefined ? null : parseTime('createdFrom', createdFrom),
    createdBefore: createdBefore === undefined ? null : parseTime('createdBefore', createdBefore),
  }
}

export function parseTime(pointer: string, text: string): Date {
  const time = new Date(text)
  // An id has no room for times before 1970 or after the year 10889.
  if (Number.isNaN(time.getTime()) || time.getTime() < 0 || time.getTime() >= 2 ** 48) {
    throw invalid({ pointer, code: 'time', detail: 'Must be an ISO 8601 time, not before 1970.' })
  }
  return time
}

/**
 * Reads a request's Idempotency-Key, which is scoped to the store and route. It comes with a hash of the body's bytes:
 * the same key with different bytes is rejected.
 */
export function readIdempotencyKey(request: FastifyRequest, route: string): IdempotencyKey | null {
  const key = request.headers['idempotency-key']
  if (key === undefined) return null
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw invalid({
      pointer: 'Idempotency-Key',
      code: 'header',
      detail: 'Must be 1 to 255 visible ASCII characters.',
    })
  }
  return { route, key, bodyHash: hash('sha256', request.bodyBytes, 'base64') }
}
