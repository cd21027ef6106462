import type { Node } from '../config/parse.ts'
import { reachedBy } from './agree.ts'
import {
  AbandonedError,
  askEndpoint,
  blocksIn,
  countBlocks,
  limitsOf,
  type NodeEndpoint,
  openEndpoint,
} from './endpoint.ts'
import { timeoutMs } from './post-calls.ts'
import {
  type Identity,
  type NoteOutcome,
  type ProviderAnswer,
  type Rpc,
  RpcAnswerError,
  type RpcCall,
  type RpcOutcome,
  RpcUnavailableError,
  unwrap,
} from './rpc.ts'

/** A node that failed is asked last for this long. */
const restMs = 5_000
/**
 * How long a provider that was caught lying is not asked. Short, because a wrong answer may be a passing mistake, and
 * with two providers both are needed.
 */
const asideMs = 15_000
/** How much longer than the first answer we wait for the others. */
const laggardMs = 2_000
/**
 * For requests for logs, this much more per block: a provider with a small limit on blocks per request, and a low rate,
 * needs this long for each.
 */
const laggardMsPerBlock = 20
/** Methods for which null means "not found". For any other method, null means that the node has lost its state. */
const nullable = new Set([
  'eth_getBlockByNumber',
  'eth_getTransactionByHash',
  'eth_getTransactionReceipt',
  'getTransaction',
  'getBlockTime',
])

export function openRpc(
  nodes: readonly Node[],
  identity: Identity,
  now: () => Date,
  noteOutcome: NoteOutcome = () => {},
): Rpc {
  const asker = openAsker(nodes, identity, now, noteOutcome)
  const { endpoints, providers, inOrder, tryInTurn, setAside } = asker

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
    listLimits: () => endpoints.flatMap((endpoint) => limitsOf(endpoint, now().getTime()) ?? []),
    blocksIn(ms, witnessesMin) {
      const at = now().getTime()
      const fastest = (provider: string) =>
        Math.max(...endpoints.filter((one) => one.provider === provider).map((one) => blocksIn(one, ms, at)))
      return reachedBy(providers.map(fastest), Math.min(witnessesMin, providers.length)) ?? 0
    },
    countCalls: () => endpoints.reduce((sum, { calls }) => sum + calls, 0),
  }
}

type Asker = ReturnType<typeof openAsker>

type AskedHow = {
  readonly isIdentified?: boolean
  /** Aborted once nobody waits for the answers. */
  readonly over?: AbortSignal
}

/**
 * Asks one node at a time. Remembers which nodes failed, when each was last identified, and which providers are not
 * asked for now.
 */
function openAsker(nodes: readonly Node[], identity: Identity, now: () => Date, noteOutcome: NoteOutcome) {
  const endpoints = nodes.map(openEndpoint)
  const providers = [...new Set(nodes.map(({ provider }) => provider))]
  const asideUntil = new Map<string, number>()

  async function ask(
    endpoint: NodeEndpoint,
    calls: readonly RpcCall[],
    { isIdentified = false, waitMs = timeoutMs, over }: AskedHow & { readonly waitMs?: number } = {},
  ): Promise<RpcOutcome[]> {
    const outcomes = await askEndpoint(endpoint, identity, calls, { isIdentified, now, waitMs, over })
    check(calls, outcomes)
    noteOutcome(endpoint.provider, null)
    return outcomes
  }

  /** Healthy nodes first, in the order they were given, beginning with the provider whose turn it is. */
  function inOrder(turn = 0, asked = providers): NodeEndpoint[] {
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
    order: readonly NodeEndpoint[],
    how: AskedHow = {},
  ): Promise<RpcOutcome[]> {
    const failures: string[] = []
    for (const [i, endpoint] of order.entries()) {
      // While other nodes are left to ask, don't wait for one whose rate limit we have reached.
      const waitMs = i === order.length - 1 ? timeoutMs : 0
      try {
        return await ask(endpoint, calls, { ...how, waitMs })
      } catch (error) {
        if (error instanceof AbandonedError) throw error
        failures.push(fail(endpoint, error))
      }
    }
    throw unavailable(failures)
  }

  /** Lets a node that failed rest, and says why. */
  function fail(endpoint: NodeEndpoint, error: unknown): string {
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
  const blocks = calls.reduce((sum, call) => sum + countBlocks(call), 0)
  const patienceMs = laggardMs + blocks * laggardMsPerBlock
  let laggards: NodeJS.Timeout | undefined
  const over = new AbortController()
  const how = { isIdentified, over: over.signal }
  const asked = providers.map(async (provider) => {
    try {
      told.push({ provider, outcomes: await tryInTurn(calls, inOrder(0, [provider]), how) })
    } catch (error) {
      if (error instanceof AbandonedError) return
      if (!(error instanceof RpcUnavailableError)) throw error
      failures.push(error.message)
      return
    }
    if (isEnough(told)) resolve()
    laggards ??= setTimeout(resolve, patienceMs)
  })
  try {
    await Promise.race([enough, Promise.all(asked)])
  } finally {
    clearTimeout(laggards)
    // The rest of a long question to a slow provider would keep the next question waiting.
    over.abort()
  }
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

/** Throws if the node's answers don't answer the calls. */
function check(calls: readonly RpcCall[], outcomes: readonly RpcOutcome[]): void {
  const empty = calls.findIndex(({ method }, i) => !nullable.has(method) && isNull(outcomes[i]))
  if (empty !== -1) throw new Error(`the node answered ${calls[empty]?.method} with null`)
}

function isNull(outcome: RpcOutcome | undefined): boolean {
  return !outcome || ('result' in outcome && (outcome.result ?? null) === null)
}
