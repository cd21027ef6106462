import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Context } from '../context.ts'
import { newId } from '../ids.ts'
import { Problem, type ProblemCode } from '../problems.ts'
import type { Caller } from '../stores/authenticate.ts'
import { refuseNul } from './body.ts'
import type { Health } from './health.ts'
import { type ProblemAnswer, renderProblem } from './problem.ts'

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null
    /** The raw body. */
    bodyBytes: Buffer
    problemCode: ProblemCode | null
  }
}

/** A payment header is about 1 KiB, or 4 KiB with many extensions. Requests above this limit get 431. */
const headerBytesMax = 12_288
/** A client that sends more slowly than this only holds a connection open. */
const headersTimeoutMs = 5_000
const requestTimeoutMs = 15_000
/**
 * A connection on which nothing moves for this long is dropped, even in the middle of an answer, because its client
 * does not read. This is twice the longest wait for an answer (`waitSeconds`, a payment's outcome) and four times the
 * longest silence of a stream. A client that reads slowly keeps its connection if the kernel accepts more data from us
 * within this time.
 */
const unreadTimeoutMs = 60_000
/** Longer than the 60 s after which load balancers drop idle connections, so that they close them first. */
const keepAliveTimeoutMs = 65_000
const timeoutCheckMs = 1_000
/** Makes clients reconnect through the load balancer now and then. */
const requestsPerSocketMax = 10_000
const connectionsMax = 10_000

/**
 * A server with our limits, one log line and one measurement per request, and no routes yet. `url` is its public URL: if
 * that is https, no answer lets a browser fall back to http, and every cookie is Secure.
 */
export function openServer(
  ctx: Context,
  health: Health,
  url: string = ctx.config.baseUrl,
  unreadMs: number = unreadTimeoutMs,
): FastifyInstance {
  const isSecure = url.startsWith('https:')
  const app = Fastify({
    logger: false,
    bodyLimit: ctx.config.bodyLimitBytes,
    trustProxy: ctx.config.trustedProxies.length > 0 ? [...ctx.config.trustedProxies] : false,
    genReqId: () => newId('req', ctx.config.cell, ctx.now()),
    routerOptions: { maxParamLength: 200 },
    requestTimeout: requestTimeoutMs,
    connectionTimeout: unreadMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    maxRequestsPerSocket: requestsPerSocketMax,
    http: {
      maxHeaderSize: headerBytesMax,
      headersTimeout: headersTimeoutMs,
      connectionsCheckingInterval: timeoutCheckMs,
    },
    // Requests that the router refuses never reach a hook.
    frameworkErrors(error, request, reply) {
      reply.headers(always).header('x-request-id', request.id)
      void sendProblem(ctx, error, request, reply)
    },
    clientErrorHandler(error, socket) {
      if (socket.writable) socket.end(renderClientError(ctx, error.code))
      else socket.destroy()
    },
  })
  app.server.maxConnections = connectionsMax
  dropUnread(app.server, unreadMs)
  app.decorateRequest('caller', null)
  app.decorateRequest('problemCode', null)
  app.decorateRequest('bodyBytes')
  observe(app, ctx, isSecure ? { ...always, ...strictTransport } : always)
  app.addHook('preValidation', refuseNul)
  // A kept-alive connection would delay the stop until its client closes it or it times out.
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (health.isDraining) reply.header('connection', 'close')
    if (isSecure) secureCookies(reply)
    done()
  })
  return app
}

const always = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

const strictTransport = { 'strict-transport-security': 'max-age=63072000' } as const

function secureCookies(reply: FastifyReply): void {
  const cookies = [reply.getHeader('set-cookie') ?? []].flat().map(String)
  if (cookies.every((cookie) => /; *secure\b/i.test(cookie))) return
  reply.removeHeader('set-cookie')
  reply.header(
    'set-cookie',
    cookies.map((cookie) => (/; *secure\b/i.test(cookie) ? cookie : `${cookie}; Secure`)),
  )
}

/** One log line and one measurement per request. */
function observe(app: FastifyInstance, ctx: Context, headers: Readonly<Record<string, string>>): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(headers).header('x-request-id', request.id)
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown'
    ctx.metrics.requests.observe(
      { method: request.method, route, status: reply.statusCode },
      reply.elapsedTime / 1_000,
    )
    ctx.log.info(
      {
        requestId: request.id,
        method: request.method,
        route,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        ...(request.caller && { storeId: request.caller.holder.store.id }),
        ...(request.problemCode && { code: request.problemCode }),
      },
      'request answered',
    )
    done()
  })
}

export function sendProblem(
  ctx: Context,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const { status, headers, body } = noteProblem(ctx, error, request)
  return reply.code(status).headers(headers).send(body)
}

/** The answer to an error. Counts it, and logs it if it is our fault. */
export function noteProblem(ctx: Context, error: unknown, request: FastifyRequest): ProblemAnswer {
  const answer = renderProblem(ctx, error, request.id)
  request.problemCode = answer.code
  ctx.metrics.problems.inc({ code: answer.code })
  if (answer.status >= 500) {
    const cause = error instanceof Problem ? (error.cause ?? error) : error
    ctx.log.error({ requestId: request.id, code: answer.code, err: cause }, 'request failed')
  }
  return answer
}

const clientErrors: Readonly<Record<string, ProblemCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/** Input that doesn't parse as HTTP never becomes a request, so its answer is written to the socket by hand. */
function renderClientError(ctx: Context, errorCode: string): string {
  const code = clientErrors[errorCode] ?? 'bad_request'
  ctx.metrics.problems.inc({ code })
  const requestId = newId('req', ctx.config.cell, ctx.now())
  const { status, headers, body } = renderProblem(
    ctx,
    new Problem(code, 'The request could not be read.'),
    requestId,
  )
  const lines = Object.entries({
    ...always,
    ...headers,
    'x-request-id': requestId,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  })
  return `HTTP/1.1 ${status} ${code}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
}

/**
 * A connection that makes no progress: the bytes that it had sent and received when that was first noticed, and the number
 * of checks since.
 */
type Stall = { readonly taken: number; readonly received: number; looks: number }

const looksMax = 6

/**
 * Drops clients that leave an answer unread but keep sending. Node's own timeout drops a connection on which nothing
 * moves for `limitMs`, but anything that a client sends counts as movement, even empty lines between requests.
 */
function dropUnread(server: Server, limitMs: number): void {
  const stalls = new Map<Socket, Stall | null>()
  server.on('connection', (socket: Socket) => {
    stalls.set(socket, null)
    socket.once('close', () => stalls.delete(socket))
  })
  const timer = setInterval(() => {
    for (const [socket, before] of stalls) {
      const stall = look(socket, before)
      if (stall && stall.looks > looksMax && socket.bytesRead > stall.received) socket.destroy()
      else if (stall !== before) stalls.set(socket, stall)
    }
  }, limitMs / looksMax)
  timer.unref()
  server.once('close', () => clearInterval(timer))
}

/** Lets an answer pause longer than the timeout. Its connection is dropped only if it has unread data. */
export function letPause(response: ServerResponse): void {
  response.on('timeout', (socket: Socket) => {
    if (socket.writableLength > 0) socket.destroy()
  })
}

/** Null if no data waits for the client. */
function look(socket: Socket, before: Stall | null): Stall | null {
  if (socket.writableLength === 0) return null
  const taken = socket.bytesWritten - socket.writableLength
  if (before?.taken !== taken) return { taken, received: socket.bytesRead, looks: 1 }
  before.looks++
  return before
}
