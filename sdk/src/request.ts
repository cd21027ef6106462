import { FarthingError } from './errors.ts'
import { delayMs, readRetryAfter, wait } from './wait.ts'
import type { ProblemDetails } from './wire.ts'

/** The client's only HTTP code: headers, time-outs, retries, errors. */

export type ClientOptions = {
  /** The store's API key, `sk_…`. It is a secret: keep it on your server. */
  readonly apiKey: string
  /** Where Farthing runs, for example `https://farthing.example`. */
  readonly baseUrl: string
  /** Used instead of the global `fetch`. */
  readonly fetch?: typeof fetch
  /** Time-out per try. Default 30,000. */
  readonly timeoutMs?: number
  /** How many times a request that is safe to repeat is retried. Default 4. */
  readonly retriesMax?: number
}

export type RequestOptions = {
  readonly signal?: AbortSignal
}

export type Call = RequestOptions & {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly body?: unknown
  readonly idempotencyKey?: string
  /** Whether the request is idempotent. Only then is it retried when its outcome is unknown. */
  readonly isRepeatable: boolean
  /** How long the server may hold the request open (long polling), on top of the time-out. */
  readonly holdMs?: number
}

export type Send = <Answer>(call: Call) => Promise<Answer>

/** The kinds of call that the client's methods make. */
export type Calls = ReturnType<typeof openCalls>

const timeoutMsDefault = 30_000
const retriesMaxDefault = 4
/** If the server asks for a longer wait than this, the error goes to the caller instead. */
const retryAfterSecondsMax = 60

/** Wrapped so that fetch is called as a plain function: some runtimes reject it as a method of another object. */
function fetchOf(options: ClientOptions): typeof fetch {
  return options.fetch ?? ((url: string | URL | Request, init?: RequestInit) => fetch(url, init))
}

/** An answer that is read while it arrives. */
export type OpenFile = (call: Pick<Call, 'path' | 'query' | 'signal'>, accept: string) => Promise<Response>

/** For files, which take as long as they take and are not asked for again: a part of one was read already. */
export function openFiles(options: ClientOptions): OpenFile {
  const send = fetchOf(options)
  const base = readBaseUrl(options.baseUrl)
  return async ({ path: at, query, signal }, accept) => {
    const answer = await send(`${base}${at}${searchOf(query)}`, {
      headers: { accept, 'x-api-key': options.apiKey },
      ...(signal && { signal }),
    }).catch((cause) => {
      signal?.throwIfAborted()
      throw new FarthingError({ code: 'no_answer', detail: noAnswerFrom(base) }, { cause })
    })
    if (!answer.ok) throw errorOf(answer, parse(await answer.text()))
    return answer
  }
}

function noAnswerFrom(base: string): string {
  return `No answer from ${base}. Is Farthing running, and is the URL right?`
}

export function openSend(options: ClientOptions): Send {
  const { apiKey, timeoutMs = timeoutMsDefault, retriesMax = retriesMaxDefault } = options
  const send = fetchOf(options)
  const base = readBaseUrl(options.baseUrl)

  const attempt = async <Answer>(call: Call): Promise<Answer> => {
    const patience = AbortSignal.timeout(timeoutMs + (call.holdMs ?? 0))
    let answer: Response
    let text: string
    try {
      answer = await send(`${base}${call.path}${searchOf(call.query)}`, {
        method: call.method,
        headers: {
          accept: 'application/json',
          'x-api-key': apiKey,
          ...(call.body !== undefined && { 'content-type': 'application/json' }),
          ...(call.idempotencyKey !== undefined && { 'idempotency-key': call.idempotencyKey }),
        },
        ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
        signal: call.signal ? AbortSignal.any([patience, call.signal]) : patience,
      })
      text = await answer.text()
    } catch (cause) {
      call.signal?.throwIfAborted()
      throw patience.aborted
        ? new FarthingError({ code: 'timeout', detail: `No answer within ${timeoutMs} ms.` }, { cause })
        : new FarthingError({ code: 'no_answer', detail: noAnswerFrom(base) }, { cause })
    }
    const json = parse(text)
    if (answer.ok && json !== undefined) return json as Answer
    throw errorOf(answer, json)
  }

  return async <Answer>(call: Call): Promise<Answer> => {
    for (let tries = 1; ; tries++) {
      try {
        return await attempt<Answer>(call)
      } catch (error) {
        if (!(error instanceof FarthingError) || tries > retriesMax || !mayRepeat(call, error)) throw error
        await wait(delayMs(tries, error.retryAfterSeconds), call.signal)
      }
    }
  }
}

export function openCalls(send: Send) {
  return {
    send,
    get: <Answer>(at: string, { signal }: RequestOptions = {}) =>
      send<Answer>({ method: 'GET', path: at, isRepeatable: true, ...(signal && { signal }) }),
    /** Idempotent changes. They are retried even if the outcome of the first try is unknown. */
    change: <Answer>(
      at: string,
      body?: unknown,
      { method = 'POST', signal }: RequestOptions & { readonly method?: Call['method'] } = {},
    ) => send<Answer>({ method, path: at, body, isRepeatable: true, ...(signal && { signal }) }),
    /** Changes that are not idempotent. They are retried only if the server said that it did nothing. */
    once: <Answer>(at: string, body?: unknown, method: Call['method'] = 'POST') =>
      send<Answer>({ method, path: at, body, isRepeatable: false }),
  }
}

/** Checked once, so that a missing setting is named before the first request, not reported as an unreachable server. */
function readBaseUrl(baseUrl: string): string {
  if (!/^https?:\/\/[^/]/.test(baseUrl) || !URL.canParse(baseUrl))
    throw new TypeError(
      `baseUrl must be where Farthing runs, such as "https://farthing.example", not ${JSON.stringify(baseUrl)}.`,
    )
  if (isReadableOnTheWay(baseUrl))
    throw new TypeError(
      `${JSON.stringify(baseUrl)} is not encrypted, and every request carries the API key. Use https; http is for this machine alone.`,
    )
  return baseUrl.replace(/\/+$/, '')
}

/** Plain http is safe only on this machine: its names and its loopback addresses. */
export function isReadableOnTheWay(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  const isLoopback =
    /^(.+\.)?localhost$/.test(hostname) || /^127\.\d+\.\d+\.\d+$/.test(hostname) || hostname === '[::1]'
  return protocol !== 'https:' && !isLoopback
}

/** Builds a path with its parts encoded, so that slashes and dots in an id stay part of the id. */
export function path(strings: TemplateStringsArray, ...parts: readonly string[]): string {
  return `/api/v1${String.raw({ raw: strings }, ...parts.map(encodeURIComponent))}`
}

/**
 * A 429 is always retried, and so is a conflict with a request that has the same idempotency key and is still running:
 * both pass by themselves. Other failures are retried only if the request is idempotent.
 */
function mayRepeat({ isRepeatable }: Call, { status, code, retryAfterSeconds }: FarthingError): boolean {
  if ((retryAfterSeconds ?? 0) > retryAfterSecondsMax) return false
  if (status === 429 || code === 'idempotency_in_progress') return true
  return isRepeatable && (status === null || status === 408 || status >= 500)
}

function searchOf(query: Call['query'] = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) search.append(name, String(value))
  return search.size === 0 ? '' : `?${search}`
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function errorOf(answer: Response, json: unknown): FarthingError {
  const { status, headers } = answer
  const problem = isProblem(json) ? json : null
  return new FarthingError({
    code: problem?.code ?? 'unreadable_answer',
    detail: problem?.detail ?? `The answer (HTTP ${status}) did not come from Farthing. Is baseUrl right?`,
    status,
    requestId: problem?.requestId ?? headers.get('x-request-id'),
    retryAfterSeconds: readRetryAfter(headers),
    problem,
  })
}

function isProblem(json: unknown): json is ProblemDetails {
  const { code, detail } = (json ?? {}) as { code?: unknown; detail?: unknown }
  return typeof code === 'string' && typeof detail === 'string'
}
