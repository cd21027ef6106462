import type { Node } from '../config/parse.ts'
import { isLimit, RpcAnswerError, type RpcCall, type RpcOutcome } from './rpc.ts'

/** A slower node is useless to a payer who is waiting. */
export const timeoutMs = 5_000
const answerBytesMax = 64 * 1024 * 1024
/**
 * Statuses with which a gateway refuses a request because of its content. Others concern the client's rights or rate,
 * or the gateway's health.
 */
const contentStatuses = new Set([400, 403, 413, 422])

/** The node refused because of its rate limit. The calls may be made again later. */
export class LimitedError extends Error {
  override readonly name = 'LimitedError'
  /** How long the node wants us to wait; null if it didn't say. */
  readonly retryAfterMs: number | null
  constructor(retryAfterMs: number | null) {
    super('the node is rate-limiting us')
    this.retryAfterMs = retryAfterMs
  }
}

/** The request as a whole was refused, and none of its calls was made. A smaller one may be accepted. */
export class BatchRefusedError extends Error {
  override readonly name = 'BatchRefusedError'
}

let nextId = 1

/**
 * Makes calls in one request: as a batch, or with `isPlain` a single call without the array around it. Throws if the
 * response doesn't answer them.
 */
export async function postCalls(
  { url }: Node,
  calls: readonly RpcCall[],
  isPlain: boolean,
): Promise<RpcOutcome[]> {
  const requests = calls.map(({ method, params }) => ({
    jsonrpc: '2.0' as const,
    id: nextId++,
    method,
    params,
  }))
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(isPlain ? requests[0] : requests),
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  })
  const length = response.headers.get('content-length')
  if (length !== null && Number.parseInt(length, 10) > answerBytesMax)
    throw new Error('the response is too large')
  if (response.status === 429) throw new LimitedError(retryAfter(response))
  if (response.ok)
    return parse(
      await response.json(),
      requests.map(({ id }) => id),
      isPlain,
    )
  const refusal = contentStatuses.has(response.status) ? await readRefusal(response) : null
  if (response.status !== 413 && !refusal) throw new Error(`status ${response.status}`)
  if (refusal && isLimit(refusal.code, refusal.message)) throw new LimitedError(retryAfter(response))
  if (isPlain && refusal) return [{ error: refusal }]
  throw new BatchRefusedError(refusal?.message ?? `status ${response.status}`)
}

function retryAfter(response: Response): number | null {
  const seconds = response.headers.get('retry-after') ?? ''
  return /^\d{1,3}$/.test(seconds) ? Number.parseInt(seconds, 10) * 1_000 : null
}

/** The JSON-RPC error in a response with an error status, if there is one. */
async function readRefusal(response: Response): Promise<RpcAnswerError | null> {
  const body: unknown = await response.json().catch(() => null)
  const [reply] = [body].flat() as (Reply | null | undefined)[]
  return reply?.error ? toError(reply.error) : null
}

type Reply = { id?: unknown; result?: unknown; error?: unknown }

/**
 * Gives each call the reply with its id. Nodes may answer in any order, leave calls out, and return an error without an
 * id. Such an error counts only if there was a single call.
 */
function parse(answer: unknown, ids: readonly number[], isPlain: boolean): RpcOutcome[] {
  const replies = [answer].flat() as (Reply | null)[]
  const outcomes = new Map(replies.map((reply) => [String(reply?.id), toOutcome(reply)]))
  const refusals = [...outcomes.values()].flatMap((outcome) => ('error' in outcome ? outcome.error : []))
  if (refusals.some(({ code, message }) => isLimit(code, message))) throw new LimitedError(null)
  const own = ids.flatMap((id) => outcomes.get(`${id}`) ?? [])
  if (own.length === ids.length && (isPlain || Array.isArray(answer))) return own
  const [refusal] = refusals
  if (isPlain && refusal) return [{ error: refusal }]
  if (isPlain) throw new Error('the node’s answer has another id than the call')
  throw new BatchRefusedError(refusal ? refusal.message : 'the node does not answer batch requests')
}

function toOutcome(reply: Reply | null): RpcOutcome {
  if (typeof reply !== 'object' || reply === null || !(reply.error || 'result' in reply))
    throw new Error('the node answered something that is not JSON-RPC')
  return reply.error ? { error: toError(reply.error) } : { result: reply.result }
}

/** Some gateways send a text instead of an error object. */
function toError(error: unknown): RpcAnswerError {
  const { code, message, data } = (typeof error === 'string' ? { message: error } : error) as {
    readonly [field in 'code' | 'message' | 'data']?: unknown
  }
  return new RpcAnswerError(typeof code === 'number' ? code : 0, String(message ?? 'unknown error'), data)
}
