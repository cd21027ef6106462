import type { Node } from '../config/parse.ts'
import { openPace, type Pace } from './pace.ts'
import { BatchRefusedError, LimitedError, postCalls } from './post-calls.ts'
import type { Identity, NodeLimits, RpcCall, RpcOutcome } from './rpc.ts'

/**
 * One node's URL, and the limits that it has shown: how many calls it accepts in one request, and how many per second.
 *
 * If a node refuses a batch, we halve it, down to single calls. The size that it accepted is remembered per method,
 * because some providers accept batches of some methods only. Nothing requires a batch. Requests for the logs of a
 * range of blocks are halved in the same way, down to single blocks.
 */
export type NodeEndpoint = Node & {
  /** After a failure the node is asked last until this time, in milliseconds. */
  restUntil: number
  /** Until this time it need not prove again that it is on our chain. */
  identifiedUntil: number
  readonly limits: Map<string, Limit>
  /** The most blocks per request for logs; null if it has not refused any lately. */
  blocksLimit: { readonly blocksMax: number; readonly until: number } | null
  readonly pace: Pace
  /** Calls posted so far. */
  calls: number
}

type Limit = { readonly callsMax: number; readonly until: number }
type Asking = {
  readonly isIdentified: boolean
  readonly now: () => Date
  /** The longest wait for a node whose rate limit we have reached. */
  readonly waitMs: number
  /** Aborted once nobody waits for the answers. Then no further request is posted. */
  readonly over: AbortSignal | undefined
}

/** Nobody waits for the answers any more, so the rest of the question was not asked. */
export class AbandonedError extends Error {
  override readonly name = 'AbandonedError'
}

/** Public nodes and the free plans of most providers accept this many. */
const callsPerRequest = 10
/**
 * After this time the full size is tried again: the limit may have been temporary, or the operator may have bought a
 * larger plan.
 */
const learnedMs = 3_600_000
/**
 * The same after a refusal that doesn't mention the size, such as an internal error, because it may have another
 * reason.
 */
const passingMs = 60_000
const sizeWords = /batch|range|blocks|limit|large|exceed|too many|at most|maximum|413/i
/** The limit in the words of a refusal: "up to a 10 block range", "limited to a 5 range", "max block range 2000". */
const sizeNamed =
  /\b(?:up to|limited to|at most|maximum|max)(?: an?| of)? (\d{1,6}) (?:blocks?|range)\b|\bmax(?:imum)? (?:block )?range (?:of )?(\d{1,6})\b/i
/** How many parts of one question are under way at a time. */
const requestsInFlight = 4
/** How long a node is believed to be on our chain if its answers show that themselves. */
const identityMs = 600_000

export function openEndpoint(node: Node): NodeEndpoint {
  return {
    ...node,
    ...{ restUntil: 0, identifiedUntil: 0 },
    ...{ limits: new Map(), blocksLimit: null, pace: openPace(), calls: 0 },
  }
}

/** How many blocks of logs a node lets us search in this time, in one call per range; infinite if it has shown no limit. */
export function blocksIn({ blocksLimit, blocksMax, pace }: NodeEndpoint, ms: number, at: number): number {
  const learned = blocksLimit && at < blocksLimit.until ? blocksLimit.blocksMax : Number.POSITIVE_INFINITY
  const perCall = Math.min(learned, blocksMax ?? Number.POSITIVE_INFINITY)
  return pace.perSecond === null ? Number.POSITIVE_INFINITY : (pace.perSecond * ms * perCall) / 1_000
}

/** The limits that a node's refusals have shown; null if it has refused nothing lately. */
export function limitsOf(
  { provider, limits, blocksLimit, pace }: NodeEndpoint,
  at: number,
): NodeLimits | null {
  const known = [...limits].filter(([, { until }]) => at < until)
  const calls = Object.fromEntries(known.map(([method, { callsMax }]) => [method, callsMax]))
  const blocksMax = blocksLimit && at < blocksLimit.until ? blocksLimit.blocksMax : null
  const { perSecond } = pace
  return known.length === 0 && blocksMax === null && perSecond === null
    ? null
    : { provider, calls, blocksMax, perSecond }
}

/**
 * Sends calls to a node, and makes sure that it is on our chain. The node behind a URL may be swapped between two
 * requests, and answers from another chain look valid. So every request also asks for the chain's id, unless the
 * answers themselves show which chain they are from. If the node accepts only single calls, the id is asked for before
 * the first call and after the last.
 */
export async function askEndpoint(
  endpoint: NodeEndpoint,
  identity: Identity,
  calls: readonly RpcCall[],
  { isIdentified, now, waitMs, over }: Asking,
): Promise<RpcOutcome[]> {
  const at = now().getTime()
  const isKnown = !isIdentified && at < endpoint.identifiedUntil
  const question = {
    ...{ calls, at, waitMs, over },
    identity: isKnown && calls.every((call) => identity.tells?.(call)) ? null : identity,
  }
  const known = new Map(endpoint.limits)
  try {
    const outcomes = await askDivided(endpoint, question)
    if (question.identity) endpoint.identifiedUntil = at + identityMs
    return outcomes
  } catch (error) {
    if (error instanceof AbandonedError) throw error
    // A node that answers nothing at all has shown nothing about its limits.
    endpoint.limits.clear()
    for (const [method, limit] of known) endpoint.limits.set(method, limit)
    throw error
  }
}

type Question = {
  readonly calls: readonly RpcCall[]
  readonly at: number
  readonly waitMs: number
  readonly over: AbortSignal | undefined
  /** Null if the answers need not show which chain they are from. */
  readonly identity: Identity | null
}

/**
 * Asks for logs in ranges that the node accepts. Each call gets the logs of all its parts, or the error of one of them.
 */
async function askDivided(endpoint: NodeEndpoint, question: Question): Promise<RpcOutcome[]> {
  const { calls, at } = question
  const { blocksMax = Number.POSITIVE_INFINITY } = endpoint
  const { blocksLimit } = endpoint
  const learned = blocksLimit && at < blocksLimit.until ? blocksLimit.blocksMax : blocksMax
  const ask = (some: readonly RpcCall[]) => askInParts(endpoint, { ...question, calls: some })
  const divided = calls.map((call) => divideRange(call, Math.min(blocksMax, learned)))
  const outcomes = await ask(divided.flat())
  const whole = divided.map((parts) => join(outcomes.splice(0, parts.length)))
  const refused = divided.flatMap((parts, i) => {
    const outcome = whole[i]
    return parts[0] && outcome && 'error' in outcome && countBlocks(parts[0]) > 1 ? { i, part: parts[0] } : []
  })
  const [first] = refused
  if (!first) return whole
  const answer = whole[first.i]
  const why = answer && 'error' in answer ? answer.error.message : ''
  const taken = await findRange(ask, first.part, why)
  if (taken === null) return whole
  if (taken < countBlocks(first.part) && !isAboutResults(why))
    endpoint.blocksLimit = { blocksMax: taken, until: at + lifeOf(why) }
  for (const { i } of refused) {
    const call = calls[i]
    if (call) whole[i] = join(await ask(divideRange(call, taken)))
  }
  return whole
}

/** How long a limit is believed after a refusal with these words. */
function lifeOf(why: string): number {
  return sizeWords.test(why) ? learnedMs : passingMs
}

/**
 * Halves the range until the node accepts it, and returns how many blocks that are; null if it refuses even one. A
 * smaller number in the words of the refusal is tried first. If they did not mention the size, the same request is
 * repeated first.
 */
async function findRange(
  ask: (calls: readonly RpcCall[]) => Promise<RpcOutcome[]>,
  call: RpcCall,
  why: string,
): Promise<number | null> {
  const refused = countBlocks(call)
  const [, before, after] = sizeNamed.exec(why) ?? []
  const named = Number.parseInt(before ?? after ?? '0', 10)
  const sizes = named > 0 && named < refused ? [named] : []
  for (let half = sizeWords.test(why) ? refused >> 1 : refused; half >= 1; half >>= 1) sizes.push(half)
  for (const blocks of sizes) {
    const [part] = divideRange(call, blocks)
    const [outcome] = part ? await ask([part]) : []
    if (outcome && 'result' in outcome) return blocks
  }
  return null
}

function join(parts: readonly RpcOutcome[]): RpcOutcome {
  const [first] = parts
  if (first && parts.length === 1) return first
  const refused = parts.find((part) => 'error' in part)
  if (refused) return refused
  return { result: parts.flatMap((part) => ('result' in part ? part.result : [])) }
}

/**
 * Whether there were too many results. That depends on the content of these blocks and says little about other ranges.
 */
function isAboutResults(words: string): boolean {
  return /results|response size/i.test(words)
}

async function askInParts(endpoint: NodeEndpoint, question: Question): Promise<RpcOutcome[]> {
  const { calls, identity, at } = question
  const outcomes: (RpcOutcome | undefined)[] = calls.map(() => undefined)
  let rest = calls.map((_, i) => i)
  let before: Promise<void> | null = null
  async function askPart(): Promise<void> {
    const part = takePart(endpoint, question, rest)
    rest = rest.slice(part.length)
    const asked = part.flatMap((i) => calls[i] ?? [])
    const isPlain = limitOf(endpoint, asked, at) === 1
    if (isPlain && identity) {
      before ??= checkIdentity(endpoint, question, identity)
      await before
    }
    const isAsked = identity !== null && !isPlain
    const posted = isAsked ? [{ method: identity.method, params: [] }, ...asked] : asked
    try {
      const answered = await post(endpoint, question, posted, isPlain)
      const own = isAsked ? answered.slice(1) : answered
      if (isAsked) check(identity, answered[0])
      for (const [place, i] of part.entries()) outcomes[i] = own[place]
    } catch (error) {
      if (!(error instanceof BatchRefusedError) || isPlain) throw error
      learn(endpoint, asked, posted.length, error.message, at)
      rest = [...part, ...rest]
    }
  }
  async function askParts(): Promise<void> {
    while (rest.length > 0) await askPart()
  }
  // Each loop takes the next part when its last one is answered, so all of them use a limit that one has learned.
  await Promise.all(Array.from({ length: requestsInFlight }, askParts))
  if (before && identity) await checkIdentity(endpoint, question, identity)
  return outcomes.map((outcome) => {
    if (!outcome) throw new Error('the node left a call unanswered')
    return outcome
  })
}

/** As many of the next calls as fit into one request. */
function takePart(
  endpoint: NodeEndpoint,
  { calls, identity, at }: Question,
  rest: readonly number[],
): number[] {
  const part: number[] = []
  for (const i of rest) {
    const more = [...part, i]
    const max = limitOf(
      endpoint,
      more.flatMap((place) => calls[place] ?? []),
      at,
    )
    const room = identity && max > 1 ? max - 1 : max
    if (part.length > 0 && (more.length > room || max === 1)) break
    part.push(i)
  }
  return part
}

/** How many of these calls one request may contain. */
function limitOf(
  { limits, alone, callsMax = callsPerRequest }: NodeEndpoint,
  calls: readonly RpcCall[],
  at: number,
) {
  if (alone && calls.some(({ method }) => alone.includes(method))) return 1
  const known = calls.flatMap(({ method }) => limits.get(method) ?? []).filter(({ until }) => at < until)
  return Math.min(callsMax, ...known.map((limit) => limit.callsMax))
}

function learn(
  endpoint: NodeEndpoint,
  asked: readonly RpcCall[],
  count: number,
  why: string,
  at: number,
): void {
  const methods = [...new Set(asked.map(({ method }) => method))]
  const named = methods.filter((method) => methods.length > 1 && why.includes(method))
  const callsMax = named.length > 0 ? 1 : Math.max(1, count >> 1)
  for (const method of named.length > 0 ? named : methods)
    endpoint.limits.set(method, { callsMax, until: at + lifeOf(why) })
}

async function checkIdentity(endpoint: NodeEndpoint, question: Question, identity: Identity): Promise<void> {
  const [chain] = await post(endpoint, question, [{ method: identity.method, params: [] }], true)
  check(identity, chain)
}

function check({ isOurs, name }: Identity, outcome: RpcOutcome | undefined): void {
  const found = outcome && 'result' in outcome ? outcome.result : null
  if (!isOurs(found)) throw new Error(`the node is on chain ${String(found)}, not ${name}`)
}

/**
 * Posts calls as fast as the node allows. If it refuses them because of its rate limit, they are posted again later.
 */
async function post(
  endpoint: NodeEndpoint,
  { calls, waitMs, over }: Question,
  posted: readonly RpcCall[],
  isPlain: boolean,
): Promise<RpcOutcome[]> {
  const { pace } = endpoint
  const tooLate = AbortSignal.timeout(waitMs)
  let isAgain = false
  for (;;) {
    const isAllowed = !tooLate.aborted && (await pace.enter(calls, posted.length, waitMs, over))
    if (over?.aborted) throw new AbandonedError('nobody waits for the answers any more')
    if (!isAllowed) throw new LimitedError(null)
    try {
      endpoint.calls += posted.length
      return await postCalls(endpoint, posted, isPlain)
    } catch (error) {
      if (!(error instanceof LimitedError)) throw error
      // Together they may be more than the node ever allows at once.
      if (isAgain && posted.length > 1) throw new BatchRefusedError(error.message)
      isAgain = true
      pace.slowDown(error.retryAfterMs)
    }
  }
}

/** A request for the logs of a range of blocks. Each provider has its own limit for the size of the range. */
type LogRange = { readonly first: number; readonly last: number }

/** Null for any other call, including one for the logs of a single block by its hash. */
function rangeOf({ method, params }: RpcCall): LogRange | null {
  if (method !== 'eth_getLogs') return null
  const { fromBlock, toBlock } = params[0] as { fromBlock?: unknown; toBlock?: unknown }
  const [first, last] = [fromBlock, toBlock].map((block) => Number.parseInt(String(block), 16))
  return first !== undefined && last !== undefined && first <= last ? { first, last } : null
}

/** The number of blocks in a request for logs; 0 if the call has no range. */
export function countBlocks(call: RpcCall): number {
  const range = rangeOf(call)
  return range ? range.last - range.first + 1 : 0
}

/** The same request, divided into ranges of at most this many blocks. */
function divideRange(call: RpcCall, blocksMax: number): RpcCall[] {
  const range = rangeOf(call)
  if (!range || countBlocks(call) <= blocksMax) return [call]
  const [filter] = call.params
  const parts: RpcCall[] = []
  for (let from = range.first; from <= range.last; from += blocksMax) {
    const to = Math.min(range.last, from + blocksMax - 1)
    const part = { ...(filter as object), fromBlock: toHex(from), toBlock: toHex(to) }
    parts.push({ ...call, params: [part] })
  }
  return parts
}

function toHex(number: number): string {
  return `0x${number.toString(16)}`
}
