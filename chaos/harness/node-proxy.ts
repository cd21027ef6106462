import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { type Hex, keccak256 } from 'viem'
import type { Sighting } from '../checker/history.ts'
import type { Observer } from '../database/database.ts'
import { answerAs, type Lie } from './liar.ts'

/**
 * refused   the connection breaks before the node sees the request
 * lost      the node executes the request; the connection breaks before the answer
 * hanging   the node executes the request; the connection stays open without an answer
 * limited   429
 * internal  the node does nothing and answers every call with -32603
 * denied    the node executes the request and answers every call with -32603 "nonce too low"
 * nothing   every result is null
 * garbage   the answer is not JSON
 * twice     the node executes the request twice
 * stale     the node does not know the newest blocks
 * stranger  the node belongs to another chain
 */
export const nodeFaults = [
  'refused',
  'lost',
  'hanging',
  'limited',
  'internal',
  'denied',
  'nothing',
  'garbage',
  'twice',
  'stale',
  'stranger',
] as const

export type NodeFault = (typeof nodeFaults)[number]

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] }
type Reply = {
  readonly id: number
  readonly jsonrpc: '2.0'
  result?: unknown
  error?: { readonly code: number; readonly message: string }
}

const lagBlocks = 3
const hangMs = 6_000

/**
 * Nodes of one chain, one per provider, that misbehave on demand. They also record when signed bytes first pass.
 */
export async function openNodeProxy(
  target: string,
  observer: Pick<Observer, 'queryOnce'>,
  providers: readonly string[] = ['a', 'b'],
) {
  const proxy = {
    providers,
    /** In the order of the providers. */
    urls: [] as string[],
    /** The providers that lie, and how. */
    liars: new Map<string, Lie>(),
    /** The providers that do not answer. */
    silent: new Set<string>(),
    /** False answers of liars. */
    falsehoods: 0,
    /** Choose the fault of the next request. If there are several, the newest decides. */
    choosers: new Set<() => NodeFault | null>(),
    /** How often each fault met each method. */
    committed: new Map<string, number>(),
    /** Calls that met a fault. */
    faults: 0,
    sightings: [] as Sighting[],
  }
  const seen = new Set<string>()

  /** Called before the bytes are forwarded: by then their sender must have committed them. */
  const note = async (bytes: Hex): Promise<void> => {
    const hash = keccak256(bytes)
    if (seen.has(hash)) return
    seen.add(hash)
    // Checked only once, because bytes that were sent too early may be committed by a second check.
    const found = await observer.queryOnce('select 1 as one from broadcasts where hash = $1', [hash])
    proxy.sightings.push({ hash, isCommitted: found && found.length > 0 })
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const asked = JSON.parse(Buffer.concat(chunks).toString()) as Call | Call[]
    const calls = [asked].flat()
    for (const { method, params } of calls)
      if (method === 'eth_sendRawTransaction') await note(params[0] as Hex)
    const fault = [...proxy.choosers].at(-1)?.() ?? null
    // Every request begins with eth_chainId, which is not counted.
    for (const { method } of fault ? calls.filter((call, i) => i > 0 || call.method !== 'eth_chainId') : []) {
      proxy.faults++
      proxy.committed.set(`${method} ${fault}`, (proxy.committed.get(`${method} ${fault}`) ?? 0) + 1)
    }
    const tell = (replies: readonly Reply[]) =>
      void response.end(JSON.stringify(Array.isArray(asked) ? replies : replies[0]))
    const fail = (message: string) => tell(calls.map(({ id }) => errorOf(id, message)))
    if (fault === 'refused') return void response.destroy()
    if (fault === 'limited') return void response.writeHead(429).end('slow down')
    if (fault === 'garbage') return void response.end('<html>502</html>')
    if (fault === 'internal') return fail('internal error')
    const provider = request.url?.slice(1) ?? ''
    if (proxy.silent.has(provider)) return void response.destroy()
    const lie = proxy.liars.get(provider)
    if (lie && fault === null) {
      const numbered = calls.map((call) => ({ ...call, jsonrpc: '2.0' as const }))
      const told = await answerAs(lie, numbered, (honest) => forward(target, honest))
      proxy.falsehoods += told.falsehoods
      return tell(told.replies)
    }
    const replies = fault === 'stale' ? await forwardStale(target, calls) : await forward(target, calls)
    if (fault === 'twice') await forward(target, calls)
    if (fault === 'lost') return void response.destroy()
    if (fault === 'hanging') return void wait(hangMs).then(() => response.destroy())
    if (fault === 'denied') return fail('nonce too low')
    if (fault === 'nothing') return tell(replies.map(({ id }) => ({ jsonrpc: '2.0', id, result: null })))
    if (fault === 'stranger') {
      const ids = new Set(calls.filter(({ method }) => method === 'eth_chainId').map(({ id }) => id))
      return tell(replies.map((reply) => (ids.has(reply.id) ? { ...reply, result: '0x1' } : reply)))
    }
    tell(replies)
  }

  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  proxy.urls.push(...providers.map((provider) => `http://127.0.0.1:${port}/${provider}`))
  return Object.assign(proxy, {
    close(): void {
      server.close()
      server.closeAllConnections()
    },
  })
}

function errorOf(id: number, message: string): Reply {
  return { jsonrpc: '2.0', id, error: { code: -32_603, message } }
}

async function forward(target: string, calls: readonly Call[]): Promise<Reply[]> {
  if (calls.length === 0) return []
  const response = await fetch(target, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(calls.map((call) => ({ jsonrpc: '2.0', ...call }))),
  })
  return (await response.json()) as Reply[]
}

/** Answers like a node that is some blocks behind: an older block is its newest, and it knows nothing above it. */
async function forwardStale(target: string, calls: readonly Call[]): Promise<Reply[]> {
  const [newest] = await forward(target, [{ id: 1, method: 'eth_blockNumber', params: [] }])
  assert(typeof newest?.result === 'string', 'the node returned no block number')
  const head = Math.max(0, Number.parseInt(newest.result, 16) - lagBlocks)
  const at = `0x${head.toString(16)}`
  const isAbove = (number: unknown) =>
    /^0x[0-9a-f]{1,12}$/.test(String(number)) && Number.parseInt(String(number), 16) > head
  const isUnknown = ({ method, params }: Call) =>
    method !== 'eth_getBlockByNumber' && params.some((param) => isAbove(param))
  const known = calls
    .filter((call) => !isUnknown(call))
    .map((call) => ({ ...call, params: call.params.map((param) => (param === 'latest' ? at : param)) }))
  const isNew = (found: unknown) => {
    const { number, blockNumber } = (found ?? {}) as { number?: unknown; blockNumber?: unknown }
    return isAbove(number) || isAbove(blockNumber)
  }
  const told = (await forward(target, known)).map((reply) => {
    const { id, result, error } = reply
    const { method, params } = calls.find((call) => call.id === id) ?? {}
    if (error) return reply
    if (method === 'eth_blockNumber') return { ...reply, result: at }
    if (!Array.isArray(result)) return isNew(result) ? { ...reply, result: null } : reply
    // A node that does not have a block reports an error, not an empty block.
    const isByHash = (params?.[0] as { blockHash?: string } | undefined)?.blockHash !== undefined
    return isByHash && result.some(isNew)
      ? errorOf(id, 'unknown block')
      : { ...reply, result: result.filter((log) => !isNew(log)) }
  })
  return [...told, ...calls.filter(isUnknown).map(({ id }) => errorOf(id, 'header not found'))]
}
