/**
 * JSON-RPC to several endpoints of one chain. Every request first asks which chain the node is on: the node behind a
 * URL may be swapped at any time, and another chain's answers look as good as ours. A call goes to the first endpoint
 * that has not just failed; if that one fails, to the next. An answer from the node itself, even an error, is final and
 * is not retried elsewhere.
 */
export type Rpc = {
  call<Result>(method: string, params: readonly unknown[]): Promise<Result>
  /** Several calls in one request. Each gets its own result or error. */
  batch(calls: readonly RpcCall[]): Promise<readonly RpcOutcome[]>
  /**
   * Like batch, but from an endpoint other than the usual one if another works: for facts that one node alone is not
   * trusted with.
   */
  batchElsewhere(calls: readonly RpcCall[]): Promise<readonly RpcOutcome[]>
  /**
   * To every endpoint. Returns after the first that takes it, so that an endpoint that hangs does not hold up the
   * others; throws what an endpoint answered if none does. `isTaken` says which errors mean that it was taken before.
   */
  send(
    method: string,
    params: readonly unknown[],
    isTaken?: (error: RpcAnswerError) => boolean,
  ): Promise<void>
  /**
   * The same call to every endpoint; returns the results of those that answer. For facts that several nodes must agree
   * on.
   */
  callAll<Result>(method: string, params: readonly unknown[]): Promise<readonly Result[]>
  /** Several calls to every endpoint, in one request each; returns the answers of those that gave any. */
  batchAll(calls: readonly RpcCall[]): Promise<readonly (readonly RpcOutcome[])[]>
  readonly endpoints: number
}

/** How to tell this chain from others. */
export type Identity = {
  readonly name: string
  readonly method: string
  readonly isOurs: (answer: unknown) => boolean
}

type RpcCall = { readonly method: string; readonly params: readonly unknown[] }
export type RpcOutcome = { readonly result: unknown } | { readonly error: RpcAnswerError }

/** A node that is slower than this is no use to a payer who is waiting. */
const timeoutMs = 5_000
/** An endpoint that failed is tried last for this long. */
const restMs = 5_000
/** What providers return, with status 200, to clients over their rate limit: not an answer to the call. */
const limitExceeded = -32005
/** Methods for which null means "not found". For any other, null means that the node has lost its state. */
const nullable = new Set([
  'eth_getBlockByNumber',
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

type Endpoint = { readonly url: string; restUntil: number }

export function openRpc(urls: readonly string[], identity: Identity, now: () => Date): Rpc {
  const endpoints: Endpoint[] = urls.map((url) => ({ url, restUntil: 0 }))
  let nextId = 1

  async function post(endpoint: Endpoint, body: unknown): Promise<unknown> {
    const response = await fetch(endpoint.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
    const length = response.headers.get('content-length')
    if (length !== null && Number.parseInt(length, 10) > answerBytesMax)
      throw new Error('the response is too large')
    if (!response.ok) throw new Error(`status ${response.status}`)
    return await response.json()
  }

  async function ask(endpoint: Endpoint, calls: readonly RpcCall[]): Promise<RpcOutcome[]> {
    const asked = [{ method: identity.method, params: [] }, ...calls]
    const [chain, ...outcomes] = parse(await post(endpoint, asked.map(request)), asked.length)
    const found = chain && 'result' in chain ? chain.result : null
    if (!identity.isOurs(found))
      throw new Error(`the node is on chain ${String(found)}, not ${identity.name}`)
    const limited = outcomes.find((outcome) => 'error' in outcome && outcome.error.code === limitExceeded)
    if (limited) throw new Error('the node is rate-limiting us')
    const empty = calls.findIndex(({ method }, i) => !nullable.has(method) && isNull(outcomes[i]))
    if (empty !== -1) throw new Error(`the node answered ${calls[empty]?.method} with null`)
    return outcomes
  }

  function request({ method, params }: RpcCall) {
    return { jsonrpc: '2.0', id: nextId++, method, params }
  }

  /** Healthy endpoints first, in the order they were given. */
  function inOrder(): Endpoint[] {
    const at = now().getTime()
    return endpoints.toSorted((a, b) => (a.restUntil > at ? 1 : 0) - (b.restUntil > at ? 1 : 0))
  }

  async function tryInTurn(calls: readonly RpcCall[], order = inOrder()): Promise<RpcOutcome[]> {
    const failures: string[] = []
    for (const endpoint of order) {
      try {
        return await ask(endpoint, calls)
      } catch (error) {
        fail(endpoint, error, failures)
      }
    }
    throw new RpcUnavailableError(
      `No node of chain ${identity.name} answered: ${failures.join('; ') || 'none is configured'}.`,
    )
  }

  async function batchAll(calls: readonly RpcCall[]): Promise<RpcOutcome[][]> {
    const failures: string[] = []
    const answers = await Promise.all(
      endpoints.map(async (endpoint) => {
        try {
          return await ask(endpoint, calls)
        } catch (error) {
          fail(endpoint, error, failures)
          return null
        }
      }),
    )
    const given = answers.filter((answer) => answer !== null)
    if (given.length === 0)
      throw new RpcUnavailableError(`No node of chain ${identity.name} answered: ${failures.join('; ')}.`)
    return given
  }

  function fail(endpoint: Endpoint, error: unknown, failures: string[]): void {
    endpoint.restUntil = now().getTime() + restMs
    // The host is enough to tell endpoints apart, and contains no key.
    failures.push(`${new URL(endpoint.url).host}: ${error instanceof Error ? error.message : String(error)}`)
  }

  return {
    endpoints: endpoints.length,
    async call<Result>(method: string, params: readonly unknown[]) {
      const [outcome] = await tryInTurn([{ method, params }])
      return unwrap<Result>(outcome)
    },
    batch: (calls) => (calls.length === 0 ? Promise.resolve([]) : tryInTurn(calls)),
    async batchElsewhere(calls) {
      const [usual, ...others] = inOrder()
      return calls.length === 0 ? [] : await tryInTurn(calls, usual ? [...others, usual] : [])
    },
    async send(method, params, isTaken = () => true) {
      const failures: string[] = []
      const tries = endpoints.map(async (endpoint) => {
        const [outcome] = await ask(endpoint, [{ method, params }]).catch((error) => {
          fail(endpoint, error, failures)
          throw error
        })
        if (outcome && 'error' in outcome && !isTaken(outcome.error)) throw outcome.error
        return outcome
      })
      const outcome = await Promise.any(tries).catch(({ errors }: AggregateError) => {
        const refusal = errors.find((error) => error instanceof RpcAnswerError)
        if (refusal) throw refusal
        throw new RpcUnavailableError(`No node of chain ${identity.name} answered: ${failures.join('; ')}.`)
      })
      unwrap(outcome)
    },
    batchAll,
    async callAll<Result>(method: string, params: readonly unknown[]) {
      const given = (await batchAll([{ method, params }])).flatMap(([outcome]) => outcome ?? [])
      const results = given.filter((answer) => 'result' in answer).map(({ result }) => result as Result)
      if (results.length === 0) return [unwrap<Result>(given[0])]
      return results
    },
  }
}

export function unwrap<Result>(outcome: RpcOutcome | undefined): Result {
  if (!outcome) throw new RpcUnavailableError('The node left a call unanswered.')
  if ('error' in outcome) throw outcome.error
  return outcome.result as Result
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
