/**
 * JSON-RPC to the nodes of one chain. A call goes to the first node that has not just failed; if that one fails, to the
 * next. An answer from the node itself, even an error, is final and is not retried elsewhere.
 *
 * No single provider is believed where money depends on it: those questions go to every provider, and the caller counts
 * the answers. A provider has one answer, however many nodes it runs.
 */
export type Rpc = {
  call<Result>(method: string, params: readonly unknown[]): Promise<Result>
  /** Several calls to one node. Each gets its own result or error. `turn` decides which provider is asked first. */
  batch(calls: readonly RpcCall[], turn?: number): Promise<readonly RpcOutcome[]>
  /**
   * To every node. Returns after the first that takes it, so that a node that hangs does not hold up the others; throws
   * what a node answered if none does. `isTaken` says which errors mean that it was taken before.
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
   * Like batchAll, with the names of the providers. Returns as soon as `isEnough`, and never waits long for a provider
   * that is much slower than the others.
   */
  askAll(
    calls: readonly RpcCall[],
    isEnough?: (told: readonly ProviderAnswer[]) => boolean,
    isIdentified?: boolean,
  ): Promise<readonly ProviderAnswer[]>
  /** Leaves a provider out of every question for a while. */
  setAside(provider: string): void
  /** What the nodes were found to take by now, if that is less than they are asked for. */
  listLimits(): readonly NodeLimits[]
  /** Names of the providers, in the order of the setting. */
  readonly providers: readonly string[]
}

/** What a node was found to take, where it has refused more. */
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
  /** Whether the answer to a call, or what is done with it, shows by itself that it is from our chain. */
  readonly tells?: (call: RpcCall) => boolean
}

export type RpcCall = { readonly method: string; readonly params: readonly unknown[] }
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

/** No endpoint answered, so it is not known whether the call took effect. */
export class RpcUnavailableError extends Error {
  override readonly name = 'RpcUnavailableError'
}

export function unwrap<Result>(outcome: RpcOutcome | undefined): Result {
  if (!outcome) throw new RpcUnavailableError('The node left a call unanswered.')
  if ('error' in outcome) throw outcome.error
  return outcome.result as Result
}

/** Codes by which providers say that a client calls too often. They have no other meaning. */
const limitCodes = new Set([429, -32005, -32007, -32016, -32029])
const limitWords =
  /rate.?limit|too many requests|request limit reached|exceeded .*(capacity|quota|requests|compute units)|requests? per second|throughput/i

/** Infura answers -32005 to a question for too many logs as well. */
const tooMuchWords = /more than \d+ results|block range|log response size/i

/**
 * Whether an error says that we call too often, and nothing about the call. The words of a contract that refuses come with
 * code 3 or behind `reverted`: a payer's wallet could otherwise make every node look busy.
 */
export function isLimit(code: number, message: string): boolean {
  if (code === 3 || /revert/i.test(message) || tooMuchWords.test(message)) return false
  return limitCodes.has(code) || limitWords.test(message)
}

/**
 * The outcome of every request: `why` is null if the node answered it, and else names the node's host, and nothing of its
 * URL beyond that.
 */
export type NoteOutcome = (provider: string, why: string | null) => void

/** How many providers answer. */
export async function countAnswering(rpc: Rpc, method: string): Promise<number> {
  return (await rpc.callAll(method, [])).length
}
