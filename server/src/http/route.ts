import type { FastifyReply, FastifyRequest } from 'fastify'
import type { TSchema } from 'typebox'
import type { StoreId } from '../ids.ts'
import { invalid, type ProblemCode } from '../problems.ts'
import type { Caller } from '../stores/authenticate.ts'

/** One operation of the API. The same value is mounted, validates, and becomes part of the OpenAPI document. */
export type Route = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** With :parameters. */
  readonly path: string
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  /** Whether the caller must show a store's key. */
  readonly isKeyed: boolean
  /**
   * Whether the caller is read from the database, not remembered from up to a second ago. By default if the method is
   * not GET: a revoked key must not change anything.
   */
  readonly needsFreshCaller?: boolean
  readonly query?: TSchema
  readonly body?: TSchema
  readonly requestHeaders?: Readonly<Record<string, string>>
  readonly answers: Readonly<Record<number, Answer>>
  /** Refusals particular to this operation, beside those that every operation may give. */
  readonly problems: readonly ProblemCode[]
  readonly handle: (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>
}

type Answer = {
  readonly description: string
  readonly schema: TSchema
  /** Another form in which the same is given to those who ask for it. */
  readonly stream?: { readonly contentType: string; readonly description: string }
  readonly headers?: Readonly<Record<string, string>>
}

export function sendJson(reply: FastifyReply, status: number, value: unknown): FastifyReply {
  return sendText(reply, status, JSON.stringify(value))
}

/** Sends JSON that is text already, byte for byte. */
export function sendText(reply: FastifyReply, status: number, json: string): FastifyReply {
  return reply.code(status).header('content-type', 'application/json; charset=utf-8').send(json)
}

/** Of a page that nobody asked a size for. */
export const limitDefault = 20

export function caller(request: FastifyRequest): Caller {
  if (!request.caller) throw new Error(`${request.routeOptions.url} was reached without a key`)
  return request.caller
}

export function storeOf(request: FastifyRequest): StoreId {
  return caller(request).holder.store.id
}

export function param(request: FastifyRequest, name: string): string {
  return (request.params as Record<string, string>)[name] ?? ''
}

export function parseTime(pointer: string, text: string): Date {
  const time = new Date(text)
  // Before 1970 and after the year 10889 an id has no room for the time.
  if (Number.isNaN(time.getTime()) || time.getTime() < 0 || time.getTime() >= 2 ** 48) {
    throw invalid({ pointer, code: 'time', detail: 'Must be an ISO 8601 time, not before 1970.' })
  }
  return time
}
