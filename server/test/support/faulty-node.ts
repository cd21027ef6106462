import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'
import { answerAs, type Lie } from '../../../chaos/harness/liar.ts'

export type Call = {
  readonly jsonrpc: '2.0'
  readonly id: number
  readonly method: string
  readonly params: readonly unknown[]
}
type Reply = { id: number; jsonrpc: '2.0'; result?: unknown; error?: { code: number; message: string } }

/**
 * refused    the connection breaks before the node sees the request
 * lost       the node executes the request; the connection breaks before it answers
 * hanging    the node executes the request and never answers
 * limited    429
 * internal   every call is answered with -32603, and the node does nothing
 * done-badly the node executes the request and answers with -32603
 * null       every result is null
 * garbage    the answer is not JSON
 * twice      the node executes the request twice
 * stale      the node does not know the newest blocks
 */
export const faults = [
  'refused',
  'lost',
  'hanging',
  'limited',
  'internal',
  'done-badly',
  'null',
  'garbage',
  'twice',
  'stale',
] as const

export type Fault = (typeof faults)[number]

/** How far behind a stale node is. */
const lagBlocks = 3

export type FaultyNode = Awaited<ReturnType<typeof openFaultyNode>>

/**
 * A node between ours and the chain that misbehaves as the test tells it to. It stops with the test or the file that
 * opened it.
 */
export async function openFaultyNode(target: string) {
  let held: { readonly method: string; readonly until: Promise<void> } | null = null
  const node = {
    url: '',
    target,
    /** The fault for a request, or null. */
    choose: (_calls: readonly Call[]): Fault | null => null,
    /** Replaces a result; an Error becomes an error answer, with its `code` if it has one. */
    lie: (_call: Call, result: unknown): unknown => result,
    /** If set, answers every call instead of the chain. */
    liar: null as Lie | null,
    /** How many of its answers were false. */
    falsehoods: 0,
    /** How often each fault has occurred. */
    committed: new Map<Fault, number>(),
    /** Callers that wait for an answer that never comes and have not given up yet. */
    waiting: 0,
    /** Calls so far, by method. */
    asked: new Map<string, number>(),
    /** How many answers `hold` is holding back. */
    holding: 0,
    /** Makes every request that contains one of these methods fail; without methods, every request. */
    fail(fault: Fault, ...only: readonly string[]): void {
      node.choose = (calls) => (only.length === 0 || hasMethod(calls, only) ? fault : null)
    },
    /** Does the same for this many requests only. */
    failTimes(fault: Fault, times: number, ...only: readonly string[]): void {
      let left = times
      node.choose = (calls) => (left > 0 && hasMethod(calls, only) && left-- > 0 ? fault : null)
    },
    heal(): void {
      node.choose = () => null
    },
    /** Holds back the answers to a method, as the node gives them now, until the returned function is called. */
    hold(method: string): () => void {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = { method, until: promise }
      return () => {
        held = null
        resolve()
      }
    },
  }
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  node.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  after(() => {
    server.close()
    server.closeAllConnections()
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const asked = JSON.parse(Buffer.concat(chunks).toString()) as Call | Call[]
    const calls = [asked].flat()
    const say = (replies: readonly Reply[]) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(Array.isArray(asked) ? replies : replies[0]))
    }
    for (const { method, params } of calls) {
      const isInBlock = method === 'eth_call' && typeof params[1] === 'object'
      const name = isInBlock ? `${method} in a block` : method
      node.asked.set(name, (node.asked.get(name) ?? 0) + 1)
    }
    const fault = node.choose(calls)
    if (fault) node.committed.set(fault, (node.committed.get(fault) ?? 0) + 1)
    const fail = () => calls.map(({ id }) => toError(id))
    if (fault === 'refused') return void response.destroy()
    if (fault === 'limited') return void response.writeHead(429).end('slow down')
    if (fault === 'garbage') return void response.end('<html>502</html>')
    if (fault === 'internal') return say(fail())
    if (node.liar && fault === null) {
      const told = await answerAs(node.liar, calls, (asked) => forward(node.target, asked))
      node.falsehoods += told.falsehoods
      return say(told.replies)
    }
    const replies =
      fault === 'stale' ? await forwardStale(node.target, calls) : await forward(node.target, calls)
    if (fault === 'twice') await forward(node.target, calls)
    if (fault === 'lost') return void response.destroy()
    if (fault === 'hanging') {
      node.waiting++
      return void response.once('close', () => node.waiting--)
    }
    if (fault === 'done-badly') return say(fail())
    const told = replies.map((reply) => {
      const call = calls.find(({ id }) => id === reply.id)
      if (!call || reply.error) return reply
      const result = fault === 'null' ? null : node.lie(call, reply.result)
      if (!(result instanceof Error)) return { ...reply, result }
      return toError(call.id, result.message, (result as { code?: number }).code)
    })
    if (held && hasMethod(calls, [held.method])) {
      node.holding++
      await held.until
      node.holding--
    }
    say(told)
  }

  return node
}

function hasMethod(calls: readonly Call[], methods: readonly string[]): boolean {
  return calls.some(({ method }) => methods.includes(method))
}

function toError(id: number, message = 'internal error', code = -32603): Reply {
  return { jsonrpc: '2.0', id, error: { code, message } }
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

/** Answers as a node that is some blocks behind: it reports an older block as the newest and knows none above it. */
async function forwardStale(target: string, calls: readonly Call[]): Promise<Reply[]> {
  const [newest] = await forward(target, [{ jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] }])
  const head = Math.max(0, Number.parseInt(newest?.result as string, 16) - lagBlocks)
  const at = `0x${head.toString(16)}`
  const isAbove = (param: unknown) =>
    /^0x[0-9a-f]{1,12}$/.test(String(param)) && Number.parseInt(String(param), 16) > head
  const isUnknown = ({ method, params }: Call) =>
    (method === 'eth_getBlockByNumber' && isAbove(params[0])) ||
    (method === 'eth_getTransactionCount' && isAbove(params[1]))
  const known = calls
    .filter((call) => !isUnknown(call))
    .map((call) => ({ ...call, params: call.params.map((param) => (param === 'latest' ? at : param)) }))
  const unknown = calls
    .filter(isUnknown)
    .map(
      ({ id, method }): Reply =>
        method === 'eth_getBlockByNumber' ? { jsonrpc: '2.0', id, result: null } : toError(id),
    )
  return [...(await forward(target, known)), ...unknown]
}

/** Numbers from 0 to 1, the same for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
