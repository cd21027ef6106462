import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { Sighting } from '../checker/history.ts'
import type { Observer } from '../database/database.ts'
import type { Call, Lie, Memory } from './lies.ts'
import { decode } from './transaction.ts'

type Numbered = Call & { readonly id: number }
type Reply = {
  readonly jsonrpc: '2.0'
  readonly id: number
  readonly result?: unknown
  readonly error?: unknown
}

/**
 * Nodes of one Solana ledger, one per provider, that lie or are down on demand. They record when signed bytes first
 * pass.
 */
export async function openLedgerNodes(target: string, providers: readonly string[]) {
  const nodes = {
    providers,
    /** Queries the database, once the fleet has one. */
    observer: null as Pick<Observer, 'queryOnce'> | null,
    /** In the order of the providers. */
    urls: [] as string[],
    liars: new Map<string, Lie>(),
    down: new Set<string>(),
    falsehoods: 0,
    sightings: [] as Sighting[],
    /** Every transaction that was sent, oldest first, by its signature. */
    sent: new Map() as Memory,
  }

  let last: Promise<unknown> = Promise.resolve()
  /** Called before the bytes are forwarded: by then their sender must have committed them. */
  const note = async (encoded: string): Promise<void> => {
    const { signature } = decode(Buffer.from(encoded, 'base64'))
    if (nodes.sent.has(signature)) return
    nodes.sent.set(signature, { encoded, at: Date.now() })
    const look = () =>
      nodes.observer?.queryOnce('select 1 as one from broadcasts where hash = $1', [signature])
    const found = last.then(look)
    last = found
    const rows = await found
    nodes.sightings.push({ hash: signature, isCommitted: rows ? rows.length > 0 : null })
  }

  const tell = async (calls: readonly Numbered[], lie: Lie | undefined): Promise<Reply[]> => {
    if (!lie) return await forward(target, calls)
    const swallowed = calls.filter(({ method }) => lie.isDropping && method === 'sendTransaction')
    const honest = await forward(
      target,
      calls.filter((call) => !swallowed.includes(call)),
    )
    nodes.falsehoods += swallowed.length
    const told = honest.map((reply): Reply => {
      const call = calls.find(({ id }) => id === reply.id)
      if (!call || reply.error) return reply
      const result = lie.change(call, reply.result, nodes.sent)
      if (!isDeepStrictEqual(result, reply.result)) nodes.falsehoods++
      return { ...reply, result }
    })
    const acknowledged = swallowed.map(({ id, params: [encoded] }): Reply => {
      const { signature } = decode(Buffer.from(String(encoded), 'base64'))
      return { jsonrpc: '2.0', id, result: signature }
    })
    return [...told, ...acknowledged]
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const provider = request.url?.slice(1) ?? ''
    if (nodes.down.has(provider)) return void response.destroy()
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const asked = JSON.parse(Buffer.concat(chunks).toString()) as Numbered | Numbered[]
    const calls = [asked].flat()
    for (const { method, params } of calls) if (method === 'sendTransaction') await note(String(params[0]))
    const replies = await tell(calls, nodes.liars.get(provider))
    // It was killed meanwhile: it has executed the call but does not answer.
    if (nodes.down.has(provider)) return void response.destroy()
    response.end(JSON.stringify(Array.isArray(asked) ? replies : replies[0]))
  }

  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  nodes.urls.push(...providers.map((provider) => `http://127.0.0.1:${port}/${provider}`))
  return Object.assign(nodes, {
    close(): void {
      server.close()
      server.closeAllConnections()
    },
  })
}

async function forward(target: string, calls: readonly Numbered[]): Promise<Reply[]> {
  if (calls.length === 0) return []
  const response = await fetch(target, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(calls),
  })
  return (await response.json()) as Reply[]
}
