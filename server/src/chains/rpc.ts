import type { Node } from '../config/parse.ts'

/**
 * JSON-RPC to the nodes of one chain. A call goes to the first node that has not just failed; if that one fails, to the
 * next. An answer from the node itself, even an error, is final and is not retried elsewhere.
 *
 * No single provider is believed where money depends on it: those questions go to every provider, and the caller counts
 * the answers. A provider has one answer, however many nodes it runs.
 *
 * The node behind a URL may be swapped at any time, and another chain's answers look as good as ours, so every request
 * first asks which chain the node is on. Only blocks tell by their hashes whose they are, so while they alone are read,
 * asking every few seconds is enough.
 */
export type Rpc = {
  call<Result>(method: string, params: readonly unknown[]): Promise<Result>
  /** Several calls in one request. Each gets its own result or error. `turn` decides which provider is asked first. */
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
  /** Several calls to every provider, in one request each; returns the answers of those that gave any. */
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
  /** Names of the providers, in the order of the setting. */
  readonly providers: readonly string[]
}

/** What one provider answered to a batch. */
export type ProviderAnswer = { readonly provider: string; readonly outcomes: readonly RpcOutcome[] }

/** How to tell this chain from others. */
export type Identity = {
  readonly name: string
  readonly method: string
  readonly isOurs: (answer: unknown) => boolean
}

export type RpcCall = { readonly method: string; readonly params: readonly unknown[] }
export type RpcOutcome = { readonly result: unknown } | { readonly error: RpcAnswerError }

/** A node that is slower than this is no use to a payer who is waiting. */
const timeoutMs = 5_000
/** A node that failed is tried last for this long. */
const restMs = 5_000
/** How long a provider that was caught lying is not asked: a lie by mistake ends, and one of two must not be missed. */
const asideMs = 15_000
/** How much longer than the first answer we wait for the others. */
const laggardMs = 2_000
/** How long a node from which only blocks are read is believed to be on the chain that it was on. */
const identityMs = 5_000
const blockReads = new Set(['eth_blockNumber', 'eth_getBlockByNumber', 'eth_getLogs'])
/** What providers return, with status 200, to clients over their rate limit: not an answer to the call. */
const limitExceeded = -32005
/** Methods for which null means "not found". For any other, null means that the node has lost its state. */
const nullable = new Set([
  'eth_getBlockByNumber',
  'eth_getTransactionByHash',
  'eth_getTransactionReceipt',
  'getTransaction',
  'getBlockTime',
])
const answerBytesMax = 64 * 1024 * 1024

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

/**
 * ProviderAnswer of every request: `why` is null if the node answered it, and else names the node's host, and nothing of its URL
 * beyond that.
 */
export type NoteOutcome = (provider: string, why: string | null) => void

export function openRpc(
  nodes: readonly Node[],
  identity: Identity,
  now: () => Date,
  noteOutcome: NoteOutcome = () => {},
): Rpc {
  const asker = openAsker(nodes, identity, now, noteOutcome)
  const { providers, inOrder, tryInTurn, setAside } = asker

  async function batchAll(calls: readonly RpcCall[]): Promise<(readonly RpcOutcome[])[]> {
    return (await askProviders(asker, calls)).map(({ outcomes }) => outcomes)
  }

  return {
    providers,
    async call<Result>(method: string, params: readonly unknown[]) {
      const [outcome] = await tryInTurn([{ method, params }], inOrder())
      return unwrap<Result>(outcome)
    },
    batch: (calls, turn) => (calls.length === 0 ? Promise.resolve([]) : tryInTurn(calls, inOrder(turn))),
    send: (method, params, isTaken = () => true) => sendToNodes(asker, { method, params }, isTaken),
    askAll: (calls, isEnough, isIdentified) => askProviders(asker, calls, isEnough, isIdentified),
    batchAll,
    async callAll<Result>(method: string, params: readonly unknown[]) {
      const given = (await batchAll([{ method, params }])).flatMap(([outcome]) => outcome ?? [])
      const results = given.filter((answer) => 'result' in answer).map(({ result }) => result as Result)
      if (results.length === 0) return [unwrap<Result>(given[0])]
      return results
    },
    setAside,
  }
}

type Endpoint = Node & { restUntil: number; identifiedUntil: number }
type Asker = ReturnType<typeof openAsker>

/** Asks one node at a time, and remembers which nodes failed, which were identified, and who is set aside. */
function openAsker(nodes: readonly Node[], identity: Identity, now: () => Date, noteOutcome: NoteOutcome) {
  const endpoints: Endpoint[] = nodes.map((node) => ({ ...node, restUntil: 0, identifiedUntil: 0 }))
  const providers = [...new Set(nodes.map(({ provider }) => provider))]
  const asideUntil = new Map<string, number>()
  let nextId = 1
  const post = (endpoint: Endpoint, calls: readonly RpcCall[]) =>
    postCalls(
      endpoint,
      calls.map(({ method, params }) => ({ jsonrpc: '2.0' as const, id: nextId++, method, params })),
    )

  async function ask(
    endpoint: Endpoint,
    calls: readonly RpcCall[],
    isIdentified = false,
  ): Promise<RpcOutcome[]> {
    const askedAt = now().getTime()
    const isKnown = !isIdentified && askedAt < endpoint.identifiedUntil
    const isEnough = isKnown && calls.every(({ method }) => blockReads.has(method))
    const outcomes = isEnough ? await post(endpoint, calls) : await identify(endpoint, calls, askedAt)
    check(calls, outcomes)
    noteOutcome(endpoint.provider, null)
    return outcomes
  }

  /** Asks in the same request which chain the node is on. */
  async function identify(
    endpoint: Endpoint,
    calls: readonly RpcCall[],
    askedAt: number,
  ): Promise<RpcOutcome[]> {
    const [chain, ...outcomes] = await post(endpoint, [{ method: identity.method, params: [] }, ...calls])
    const found = chain && 'result' in chain ? chain.result : null
    if (!identity.isOurs(found))
      throw new Error(`the node is on chain ${String(found)}, not ${identity.name}`)
    endpoint.identifiedUntil = askedAt + identityMs
    return outcomes
  }

  /** Healthy nodes first, in the order they were given, beginning with the provider whose turn it is. */
  function inOrder(turn = 0, asked = providers): Endpoint[] {
    const at = now().getTime()
    const start = asked.length === 0 ? 0 : turn % asked.length
    const rotated = [...asked.slice(start), ...asked.slice(0, start)]
    return rotated
      .filter((provider) => (asideUntil.get(provider) ?? 0) <= at)
      .flatMap((provider) => endpoints.filter((endpoint) => endpoint.provider === provider))
      .toSorted((a, b) => (a.restUntil > at ? 1 : 0) - (b.restUntil > at ? 1 : 0))
  }

  async function tryInTurn(
    calls: readonly RpcCall[],
    order: readonly Endpoint[],
    isIdentified = false,
  ): Promise<RpcOutcome[]> {
    const failures: string[] = []
    for (const endpoint of order) {
      try {
        return await ask(endpoint, calls, isIdentified)
      } catch (error) {
        failures.push(fail(endpoint, error))
      }
    }
    throw unavailable(failures)
  }

  /** Lets a node that failed rest, and says why. */
  function fail(endpoint: Endpoint, error: unknown): string {
    endpoint.restUntil = now().getTime() + restMs
    endpoint.identifiedUntil = 0
    // The host is enough to tell nodes apart, and contains no key.
    const why = `${new URL(endpoint.url).host}: ${error instanceof Error ? error.message : String(error)}`
    noteOutcome(endpoint.provider, why)
    return why
  }

  function unavailable(failures: readonly string[]): RpcUnavailableError {
    return new RpcUnavailableError(
      `No node of chain ${identity.name} answered: ${failures.join('; ') || 'none is configured'}.`,
    )
  }

  function setAside(provider: string): void {
    asideUntil.set(provider, now().getTime() + asideMs)
  }

  return { endpoints, providers, ask, inOrder, tryInTurn, fail, unavailable, setAside }
}

async function askProviders(
  { providers, inOrder, tryInTurn, unavailable }: Asker,
  calls: readonly RpcCall[],
  isEnough: (told: readonly ProviderAnswer[]) => boolean = () => false,
  isIdentified = false,
): Promise<readonly ProviderAnswer[]> {
  if (calls.length === 0) return []
  const told: ProviderAnswer[] = []
  const failures: string[] = []
  const { promise: enough, resolve } = Promise.withResolvers<void>()
  let laggards: NodeJS.Timeout | undefined
  const asked = providers.map(async (provider) => {
    try {
      told.push({ provider, outcomes: await tryInTurn(calls, inOrder(0, [provider]), isIdentified) })
    } catch (error) {
      if (!(error instanceof RpcUnavailableError)) throw error
      failures.push(error.message)
      return
    }
    if (isEnough(told)) resolve()
    laggards ??= setTimeout(resolve, laggardMs)
  })
  await Promise.race([enough, Promise.all(asked)]).finally(() => clearTimeout(laggards))
  if (told.length === 0) throw unavailable(failures)
  return [...told]
}

async function sendToNodes(
  { endpoints, ask, fail, unavailable }: Asker,
  call: RpcCall,
  isTaken: (error: RpcAnswerError) => boolean,
): Promise<void> {
  const failures: string[] = []
  const tries = endpoints.map(async (endpoint) => {
    const [outcome] = await ask(endpoint, [call]).catch((error) => {
      failures.push(fail(endpoint, error))
      throw error
    })
    if (outcome && 'error' in outcome && !isTaken(outcome.error)) throw outcome.error
    return outcome
  })
  const outcome = await Promise.any(tries).catch(({ errors }: AggregateError) => {
    const refusal = errors.find((error) => error instanceof RpcAnswerError)
    if (refusal) throw refusal
    throw unavailable(failures)
  })
  unwrap(outcome)
}

/** How many providers answer. */
export async function countAnswering(rpc: Rpc, method: string): Promise<number> {
  return (await rpc.callAll(method, [])).length
}

export function unwrap<Result>(outcome: RpcOutcome | undefined): Result {
  if (!outcome) throw new RpcUnavailableError('The node left a call unanswered.')
  if ('error' in outcome) throw outcome.error
  return outcome.result as Result
}

type Request = RpcCall & { readonly jsonrpc: '2.0'; readonly id: number }

async function postCalls(endpoint: Node, requests: readonly Request[]): Promise<RpcOutcome[]> {
  const response = await fetch(endpoint.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(requests),
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  })
  const length = response.headers.get('content-length')
  if (length !== null && Number.parseInt(length, 10) > answerBytesMax)
    throw new Error('the response is too large')
  if (!response.ok) throw new Error(`status ${response.status}`)
  return parse(await response.json(), requests.length)
}

/** Throws if what the node answered is no answer to the calls. */
function check(calls: readonly RpcCall[], outcomes: readonly RpcOutcome[]): void {
  const limited = outcomes.find((outcome) => 'error' in outcome && outcome.error.code === limitExceeded)
  if (limited) throw new Error('the node is rate-limiting us')
  const empty = calls.findIndex(({ method }, i) => !nullable.has(method) && isNull(outcomes[i]))
  if (empty !== -1) throw new Error(`the node answered ${calls[empty]?.method} with null`)
}

function isNull(outcome: RpcOutcome | undefined): boolean {
  return !outcome || ('result' in outcome && (outcome.result ?? null) === null)
}

type Reply = { id?: unknown; result?: unknown; error?: { code?: unknown; message?: unknown; data?: unknown } }

/** Puts the replies of a batch in the order of its calls: nodes may answer in any order. */
function parse(answer: unknown, expected: number): RpcOutcome[] {
  if (!Array.isArray(answer) || answer.length !== expected)
    throw new Error('the node does not answer batch requests')
  const replies = (answer as Reply[]).toSorted((a, b) => (a.id as number) - (b.id as number))
  return replies.map(({ result, error }) => {
    if (!error) return { result }
    const code = typeof error.code === 'number' ? error.code : 0
    return { error: new RpcAnswerError(code, String(error.message ?? 'unknown error'), error.data) }
  })
}
