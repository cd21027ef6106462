import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { atEnd } from '../../support/at-end.ts'
import type { Call } from '../../support/faulty-node.ts'
import type { Policy, ProviderError } from './policies.ts'

type Behind = { readonly safe: number; readonly finalized: number }
type Reply = { readonly id: number; readonly jsonrpc: '2.0'; result?: unknown; error?: ProviderError }
export type Said = {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

type Asked = { readonly methods: readonly string[]; readonly from: number; to: number | null }

/** An error, or what to answer instead of the chain. */
type CallAnswer = ProviderError | 'null' | { readonly result: unknown }

export type Provider = Awaited<ReturnType<typeof openProvider>>

/** A proxy in front of a local chain that allows what a provider's policy allows. It stops with the file. */
export async function openProvider(target: string, policy: Policy = {}) {
  const provider = {
    url: '',
    target,
    policy,
    /** Calls that arrived, by method. */
    asked: new Map<string, number>(),
    requests: 0,
    mostCalls: 0,
    /** What was asked together, and between which times, as the client sees them. */
    journal: [] as Asked[],
    /** How many blocks the blocks with these tags are behind the newest one, instead of what the chain says. */
    behind: null as Behind | null,
    /** How long a request and its answer are on their way, half of it each. */
    latencyMs: 0,
    /** Requests refused as a whole, and requests refused for coming too often. */
    refused: 0,
    limited: 0,
    /** Calls that were refused by themselves, with the words. */
    refusals: [] as string[],
    /** Answers a whole request, or a single call of it, instead of the chain. */
    answerRequest: (_calls: readonly Call[]): Said | null | Promise<Said | null> => null,
    answerCall: (_call: Call): CallAnswer | null => null,
  }
  const buckets: Buckets = new Map()
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  provider.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const asked = JSON.parse(Buffer.concat(chunks).toString()) as Call | Call[]
    const calls = [asked].flat()
    const entry: Asked = { methods: calls.map(({ method }) => method), from: performance.now(), to: null }
    provider.journal.push(entry)
    if (provider.latencyMs > 0) await wait(provider.latencyMs / 2)
    provider.requests++
    provider.mostCalls = Math.max(provider.mostCalls, calls.length)
    for (const { method } of calls) provider.asked.set(method, (provider.asked.get(method) ?? 0) + 1)
    const { status, body, headers } =
      (await provider.answerRequest(calls)) ??
      refuse(provider, buckets, calls) ??
      toSaid(asked, await judge(provider, calls))
    if (provider.latencyMs > 0) await wait(provider.latencyMs / 2)
    entry.to = performance.now()
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  }
  return provider
}

type Refusing = {
  readonly policy: Policy
  refused: number
  limited: number
}

/** Refuses a request as a whole. */
function refuse(provider: Refusing, buckets: Buckets, calls: readonly Call[]): Said | null {
  const { policy } = provider
  if (isTooOften(policy, buckets, calls)) {
    provider.limited++
    const error = policy.limitError ?? { code: 429, message: 'Too many requests' }
    if (policy.limitForm === 'each')
      return toSaid(
        [...calls],
        calls.map(({ id }) => toReply(id, error)),
      )
    const headers = policy.limitForm === 'retry-after' ? { 'retry-after': '1' } : {}
    return { status: 429, body: JSON.stringify({ jsonrpc: '2.0', id: null, error }), headers }
  }
  const alone = calls.length > 1 ? calls.find(({ method }) => policy.aloneOnly?.includes(method)) : undefined
  if (!alone && calls.length <= (policy.callsMax ?? Number.POSITIVE_INFINITY)) return null
  provider.refused++
  const message = alone ? `Batch requests are not allowed for ${alone.method}` : 'batch too large'
  const reply = { jsonrpc: '2.0', id: null, error: { code: -32600, message } }
  const status = policy.refusal === 'status-400' ? 400 : policy.refusal === 'status-413' ? 413 : 200
  return { status, body: JSON.stringify(policy.refusal === 'one-error' ? [reply] : reply) }
}

/** What is left of a limit, by what it is about. */
type Buckets = Map<string, { units: number; at: number }>

/** Whether a request exceeds a limit of calls in a time. One that does takes nothing. */
function isTooOften(
  { perSecond, burst = perSecond, costs, methodPerSecond }: Policy,
  buckets: Buckets,
  calls: readonly Call[],
): boolean {
  const now = Date.now()
  const limits = [...Map.groupBy(calls, ({ method }) => method)].flatMap(([method, { length }]) => {
    const rate = methodPerSecond?.[method] ?? methodPerSecond?.any
    return rate === undefined ? [] : { name: method, rate, most: rate * 10, cost: length }
  })
  const cost = calls.reduce((sum, { method }) => sum + (costs?.[method] ?? 1), 0)
  if (perSecond !== undefined) limits.push({ name: '', rate: perSecond, most: burst ?? perSecond, cost })
  const states = limits.map(({ name, rate, most, cost }) => {
    const bucket = buckets.get(name) ?? { units: most, at: now }
    const units = Math.min(most, bucket.units + ((now - bucket.at) / 1_000) * rate)
    return { name, units, cost }
  })
  const isOver = states.some(({ units, cost }) => units < cost)
  for (const { name, units, cost } of states)
    buckets.set(name, { units: isOver ? units : units - cost, at: now })
  return isOver
}

/** Refuses single calls, and has the chain answer the others. */
async function judge(
  provider: {
    readonly policy: Policy
    readonly target: string
    readonly refusals: string[]
    readonly behind: Behind | null
    answerCall(call: Call): CallAnswer | null
  },
  calls: readonly Call[],
): Promise<Reply[]> {
  const { policy } = provider
  const refused = new Map<number, Reply>()
  for (const call of calls) {
    const error =
      provider.answerCall(call) ?? findRefusal(policy, call) ?? (await findOldState(provider, call))
    if (!error) continue
    if (error !== 'null' && 'result' in error) {
      refused.set(call.id, { jsonrpc: '2.0', id: call.id, result: error.result })
      continue
    }
    if (error === 'null' || (error === noBlock && policy.tagRefusal === 'null')) {
      refused.set(call.id, { jsonrpc: '2.0', id: call.id, result: null })
      continue
    }
    provider.refusals.push(`${call.method}: ${error.message}`)
    refused.set(call.id, toReply(call.id, error))
  }
  const known = calls.filter(({ id }) => !refused.has(id))
  const told = await forward(provider.target, await placeTags(provider, known))
  return calls.map(({ id, method }) => {
    const reply = refused.get(id) ?? told.find((one) => one.id === id)
    if (!reply) throw new Error(`the chain left ${method} unanswered`)
    if (method === 'eth_getBlockByNumber' && reply.result)
      for (const field of policy.headerLacks ?? []) delete (reply.result as Record<string, unknown>)[field]
    return reply
  })
}

const noBlock: ProviderError = { code: -39001, message: 'block not found' }

function findRefusal(policy: Policy, { method, params }: Call): ProviderError | null {
  const filter = params[0] as { fromBlock?: string; toBlock?: string } | undefined
  if (method === 'eth_getLogs' && policy.blocksMax && filter?.fromBlock && filter.toBlock) {
    const blocks = Number.parseInt(filter.toBlock, 16) - Number.parseInt(filter.fromBlock, 16) + 1
    if (blocks > policy.blocksMax)
      return policy.blocksRefusal ?? { code: -32602, message: 'block range is too large' }
  }
  if (policy.refusedMethods?.includes(method))
    return { code: -32601, message: `the method ${method} does not exist/is not available` }
  const tag = policy.refusedTags?.find((one) => params.includes(one))
  return tag === undefined ? null : noBlock
}

/** State at a block is asked for by the block's hash. */
async function findOldState(
  { policy, target }: { readonly policy: Policy; readonly target: string },
  { params }: Call,
): Promise<ProviderError | null> {
  const { blockHash } = (params[1] ?? {}) as { blockHash?: string }
  if (policy.stateKept === undefined || blockHash === undefined) return null
  const call = { jsonrpc: '2.0', method: 'eth_getBlockByHash' } as const
  const [asked, head] = await forward(target, [
    { ...call, id: 1, params: [blockHash, false] },
    { ...call, id: 2, method: 'eth_getBlockByNumber', params: ['latest', false] },
  ])
  const [first = 0, last = 0] = [asked, head].map((reply) =>
    Number.parseInt(String((reply?.result as { number: string } | null | undefined)?.number), 16),
  )
  return last - first < policy.stateKept
    ? null
    : { code: -32000, message: 'missing trie node: state is not available' }
}

/** Puts numbers in the place of `safe` and `finalized`. */
async function placeTags(
  { behind, target }: { readonly behind: Behind | null; readonly target: string },
  calls: readonly Call[],
): Promise<readonly Call[]> {
  const tagOf = ({ params: [tag] }: Call) => (tag === 'safe' || tag === 'finalized' ? tag : null)
  if (!behind || !calls.some(tagOf)) return calls
  const [head] = await forward(target, [{ jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] }])
  const newest = Number.parseInt(String(head?.result), 16)
  return calls.map((call) => {
    const tag = tagOf(call)
    return tag ? { ...call, params: [`0x${Math.max(0, newest - behind[tag]).toString(16)}`, false] } : call
  })
}

function toReply(id: number, error: ProviderError): Reply {
  return { jsonrpc: '2.0', id, error }
}

function toSaid(asked: Call | readonly Call[], replies: readonly Reply[]): Said {
  return { status: 200, body: JSON.stringify(Array.isArray(asked) ? replies : replies[0]) }
}

async function forward(target: string, calls: readonly Call[]): Promise<Reply[]> {
  if (calls.length === 0) return []
  const response = await fetch(target, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(calls),
  })
  return (await response.json()) as Reply[]
}
