/**
 * JSON-RPC to the nodes of one chain. A call goes to the first node that has not just failed, and if that one fails, to
 * the next. A node's answer is final even if it is an error: it is not retried elsewhere.
 *
 * Where money depends on the answer, the question goes to every provider, and the caller counts the answers. A provider
 * has one vote, however many nodes it runs.
 */
export type Rpc = {
  call<Result>(method: string, params: readonly unknown[]): Promise<Result>
  /** Several calls to one node. Each gets its own result or error. `turn` decides which provider is asked first. */
  batch(calls: readonly RpcCall[], turn?: number): Promise<readonly RpcOutcome[]>
  /**
   * To every node. Returns after the first that accepts it, so that a node that hangs delays nothing. If none does,
   * throws a node's error. `isTaken` recognises errors which mean that the node has it already.
   */
  send(
    method: string,
    params: readonly unknown[],
    isTaken?: (error: RpcAnswerError) => boolean,
  ): Promise<void>
  /** The same call to every provider; returns the results of those that answer. */
  callAll<Result>(method: string, params: readonly unknown[]): Promise<readonly Result[]>
  /** Several calls to every provider; returns the answers of those that gave any. */
  batchAll(calls: readonly RpcCall[]): Promise<readonly (readonly RpcOutcome[])[]>
  /**
   * Like batchAll, with the names of the providers. Returns as soon as `isEnough`, and does not wait long for a
   * provider that is much slower than the others.
   */
  askAll(
    calls: readonly RpcCall[],
    isEnough?: (told: readonly ProviderAnswer[]) => boolean,
    isIdentified?: boolean,
  ): Promise<readonly ProviderAnswer[]>
  /** Leaves a provider out of every question for a while. */
  setAside(provider: string): void
  /**
   * How many blocks of logs enough providers let us search in this time, with one call per range. Infinite if they have
   * shown no limit.
   */
  blocksIn(ms: number, witnessesMin: number): number
  /** The limits that the nodes have shown, where they are below what we ask for. */
  listLimits(): readonly NodeLimits[]
  /** How many calls were posted to the nodes so far. */
  countCalls(): number
  /** Names of the providers, in the order of the setting. */
  readonly providers: readonly string[]
}

/** The limits that a node has shown by refusing more. */
export type NodeLimits = {
  readonly provider: string
  /** Calls per request, by method. */
  readonly calls: Readonly<Record<string, number>>
  /** Blocks per question for logs. */
  readonly blocksMax: number | null
  /** Calls per second. */
  readonly perSecond: number | null
}

/** What one provider answered to a batch. */
export type ProviderAnswer = { readonly provider: string; readonly outcomes: readonly RpcOutcome[] }

/** How to tell this chain from others. */
export type Identity = {
  readonly name: string
  readonly method: string
  readonly isOurs: (answer: unknown) => boolean
  /** Whether the answer to a call, or the use made of it, shows by itself that it is from our chain. */
  readonly tells?: (call: RpcCall) => boolean
}

export type RpcCall = {
  readonly method: string
  readonly params: readonly unknown[]
  /** The answer only says where to look, so it need not show which chain it is from. */
  readonly isHint?: true
}
export type RpcOutcome = { readonly result: unknown } | { readonly error: RpcAnswerError }

/** The node understood the call and refused it. */
export class RpcAnswerError extends Error {
  override readonly name = 'RpcAnswerError'
  readonly code: number
  readonly data: unknown
  constructor(code: number, message: string, data: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

/** No node answered, so it is not known whether the call took effect. */
export class RpcUnavailableError extends Error {
  override readonly name = 'RpcUnavailableError'
}

/** Whether nodes did not answer, or refused. Any other error is ours. */
export function isNodeError(error: unknown): error is RpcAnswerError | RpcUnavailableError {
  return error instanceof RpcAnswerError || error instanceof RpcUnavailableError
}

export function unwrap<Result>(outcome: RpcOutcome | undefined): Result {
  if (!outcome) throw new RpcUnavailableError('The node left a call unanswered.')
  if ('error' in outcome) throw outcome.error
  return outcome.result as Result
}

/** Codes by which providers report that their rate limit is exceeded. They have no other meaning. */
const limitCodes = new Set([429, -32005, -32007, -32016, -32029])
const limitWords =
  /rate.?limit|too many requests|request limit reached|exceeded .*(capacity|quota|requests|compute units)|requests? per second|throughput/i

/** Infura also answers -32005 to a request for too many logs. */
const tooMuchWords = /more than \d+ results|block range|log response size/i

/**
 * Whether an error reports an exceeded rate limit, which says nothing about the call. A contract's own words don't
 * count (code 3, or after `reverted`): otherwise a payer's wallet contract could make every node look busy.
 */
export function isLimit(code: number, message: string): boolean {
  if (code === 3 || /revert/i.test(message) || tooMuchWords.test(message)) return false
  return limitCodes.has(code) || limitWords.test(message)
}

/**
 * Gets the outcome of every request. `why` is null if the node answered; else it contains the node's host, and no other
 * part of its URL.
 */
export type NoteOutcome = (provider: string, why: string | null) => void

/** How many providers answer. */
export async function countAnswering(rpc: Rpc, method: string): Promise<number> {
  return (await rpc.callAll(method, [])).length
}
