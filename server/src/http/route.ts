import type { Actor, Scope } from '@farthing/sdk'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import type { Context } from '../context.ts'
import type { StoreId } from '../ids.ts'
import { invalid, type ProblemCode } from '../problems.ts'
import type { Caller } from '../stores/authenticate.ts'

/**
 * One operation of the API. This value mounts it, validates its requests and describes it in the OpenAPI document: its
 * schemas are JSON Schema, and one that differs from the SDK's type does not compile.
 */
export type Route = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** With :parameters. */
  readonly path: string
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  /** What the caller's key must be allowed to do; `any`: every key of the store will do; null: no key is needed. */
  readonly scope: Scope | 'any' | null
  /**
   * Whether the caller is read from the database instead of a cache that may be a second old. The default is true unless
   * the method is GET.
   */
  readonly needsFreshCaller?: boolean
  /**
   * For what protects a store: it waits behind none of the store's other changes, and is not limited where the store has
   * proven no wallet.
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
  /** `ctx` is the one to change things with: in it nothing is committed by a key that has ended meanwhile. */
  readonly handle: (ctx: Context, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>
}

type Answer = {
  readonly description: string
  readonly schema: TSchema
  /** The same content as a stream, for clients that ask for it. */
  readonly stream?: { readonly contentType: string; readonly description: string }
  readonly headers?: Readonly<Record<string, string>>
}

export function sendJson(reply: FastifyReply, status: number, value: unknown): FastifyReply {
  return sendText(reply, status, JSON.stringify(value))
}

/** Sends text that is already JSON, byte for byte. */
export function sendText(reply: FastifyReply, status: number, json: string): FastifyReply {
  return reply.code(status).header('content-type', 'application/json; charset=utf-8').send(json)
}

/** The page size if the request names none. */
export const limitDefault = 20

export function caller(request: FastifyRequest): Caller {
  if (!request.caller)
    throw new Error(`${request.routeOptions.url} was called without an API key: set a scope on its route`)
  return request.caller
}

export function storeOf(request: FastifyRequest): StoreId {
  return caller(request).holder.store.id
}

export function actorOf(request: FastifyRequest): Actor {
  return caller(request).actor
}

export function param(request: FastifyRequest, name: string): string {
  return (request.params as Record<string, string>)[name] ?? ''
}

/** The range of time of a list: from `createdFrom` until before `createdBefore`. */
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
