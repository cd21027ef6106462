import type { Node } from '../config/parse.ts'
import { isLimit, RpcAnswerError, type RpcCall, type RpcOutcome } from './rpc.ts'

/** A node that is slower than this is no use to a payer who is waiting. */
export const timeoutMs = 5_000
const answerBytesMax = 64 * 1024 * 1024
/** Statuses with which gateways refuse a request for what is in it, rather than for who asks or how they are doing. */
const contentStatuses = new Set([400, 403, 413, 422])

/** We call too often. The calls may be made again, later. */
export class LimitedError extends Error {
  override readonly name = 'LimitedError'
  /** How long the node wants to be left alone, if it said so. */
  readonly retryAfterMs: number | null
  constructor(retryAfterMs: number | null) {
    super('the node is rate-limiting us')
    this.retryAfterMs = retryAfterMs
  }
}

/** The request as a whole was refused, and none of its calls was made: a smaller one may be taken. */
export class BatchRefusedError extends Error {
  override readonly name = 'BatchRefusedError'
}

let nextId = 1

/**
 * Makes calls in one request: as a batch, or, `isPlain`, a single one without the array around it. Throws if what comes
 * back is no answer to them.
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

/** The error in the body of a response with a status of its own, if there is one. */
async function readRefusal(response: Response): Promise<RpcAnswerError | null> {
  const body: unknown = await response.json().catch(() => null)
  const [reply] = [body].flat() as (Reply | null | undefined)[]
  return reply?.error ? toError(reply.error) : null
}

type Reply = { id?: unknown; result?: unknown; error?: unknown }

/**
 * Gives each call the reply with its id: nodes may answer in any order, leave calls out, and tell an error without saying
 * which call it is about. Such an error is an answer only to a call that was made alone.
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
  if (isPlain) throw new Error('the node answered another call than the one that was made')
  throw new BatchRefusedError(refusal ? refusal.message : 'the node does not answer batch requests')
}

function toOutcome(reply: Reply | null): RpcOutcome {
  if (typeof reply !== 'object' || reply === null || !(reply.error || 'result' in reply))
    throw new Error('the node answered something that is not JSON-RPC')
  return reply.error ? { error: toError(reply.error) } : { result: reply.result }
}

/** Some gateways put a text where an object belongs. */
function toError(error: unknown): RpcAnswerError {
  const { code, message, data } = (typeof error === 'string' ? { message: error } : error) as {
    readonly [field in 'code' | 'message' | 'data']?: unknown
  }
  return new RpcAnswerError(typeof code === 'number' ? code : 0, String(message ?? 'unknown error'), data)
}
