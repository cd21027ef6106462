/**
 * JSON-RPC to several endpoints of one chain. Every request asks which chain it is first: what stands behind an address
 * may be swapped at any time, and what another chain answers looks as good as what ours would. A call goes to the
 * endpoint that answered last; when that fails, to the next. What the node itself answers, be it an error, is an answer
 * and is not asked again elsewhere.
 */
export type Rpc = {
  call<Result>(method: string, params: readonly unknown[]): Promise<Result>
  /** Several calls in one request. Each gets its own result or error. */
  batch(calls: readonly RpcCall[]): Promise<readonly RpcOutcome[]>
  /** The same, of another endpoint than usual where one works: for what one alone is not believed in. */
  batchElsewhere(calls: readonly RpcCall[]): Promise<readonly RpcOutcome[]>
  /** To every endpoint, until the first has answered: one that hangs does not hold up what another has done. */
  send(method: string, params: readonly unknown[]): Promise<void>
  /** The same call to every endpoint that answers: for what two must agree on. */
  callAll<Result>(method: string, params: readonly unknown[]): Promise<readonly Result[]>
  /** Several calls to each endpoint, in one request each: the answers of those that gave any. */
  batchAll(calls: readonly RpcCall[]): Promise<readonly (readonly RpcOutcome[])[]>
  readonly endpoints: number
}

/** How a chain is told from others. */
export type Identity = {
  readonly name: string
  readonly method: string
  readonly isOurs: (answer: unknown) => boolean
}

type RpcCall = { readonly method: string; readonly params: readonly unknown[] }
export type RpcOutcome = { readonly result: unknown } | { readonly error: RpcAnswerError }

/** A node that answers slower than this is no use to a payer who is waiting. */
const timeoutMs = 5_000
/** A broken endpoint is left alone this long before it is tried first again. */
const restMs = 5_000
/** What providers answer, with status 200, when they are asked too often: not an answer to the call. */
const limitExceeded = -32005
/** Where null means "there is none". Anywhere else it is what a node says that has lost its memory. */
const nullable = new Set([
  'eth_getBlockByNumber',
  'eth_getTransactionReceipt',
  'getTransaction',
  'getBlockTime',
])
const answerBytesMax = 64 * 1024 * 1024

/** The node understood the call and said no. */
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

/** No endpoint gave an answer: whether the call took effect is not known. */
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
      throw new Error('the answer is too large')
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
    if (limited) throw new Error('the node refuses more requests for now')
    const empty = calls.findIndex(({ method }, i) => !nullable.has(method) && isNull(outcomes[i]))
    if (empty !== -1) throw new Error(`the node answers ${calls[empty]?.method} with nothing`)
    return outcomes
  }

  function request({ method, params }: RpcCall) {
    return { jsonrpc: '2.0', id: nextId++, method, params }
  }

  /** Healthy ones first, in the order they were given. */
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
    // The host is enough to tell endpoints apart, and holds no key.
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
    async send(method, params) {
      const failures: string[] = []
      const tries = endpoints.map((endpoint) =>
        ask(endpoint, [{ method, params }]).catch((error) => {
          fail(endpoint, error, failures)
          throw error
        }),
      )
      const [outcome] = await Promise.any(tries).catch(() => {
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
    throw new Error('the node does not answer batches')
  const replies = (answer as Reply[]).toSorted((a, b) => (a.id as number) - (b.id as number))
  return replies.map(({ result, error }) => {
    if (!error) return { result }
    const code = typeof error.code === 'number' ? error.code : 0
    return { error: new RpcAnswerError(code, String(error.message ?? 'unknown error'), error.data) }
  })
}
