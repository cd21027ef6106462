import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { atEnd } from '../../support/at-end.ts'
import { patienceMs } from '../../support/patience.ts'

export type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] }

type Holding = {
  readonly matches: (call: Call) => boolean
  readonly isAnswered: boolean
  readonly arrive: () => void
  readonly open: Promise<void>
}

/**
 * A proxy in front of a node: it forwards everything unchanged, but a test can inspect a call and hold it. That lets a
 * test decide what happens between two steps of a client of this node.
 */
export async function openGate(target: string, look: (call: Call) => Promise<void> = async () => {}) {
  let holding: Holding | null = null
  let pending = 0
  const server = createServer(async (request, response) => {
    pending++
    try {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const body = Buffer.concat(chunks)
      const calls = [JSON.parse(body.toString()) as Call | Call[]].flat()
      for (const call of calls) await look(call)
      const held = holding && calls.some(holding.matches) ? holding : null
      if (held && !held.isAnswered) {
        held.arrive()
        await held.open
      }
      const headers = { 'content-type': 'application/json' }
      const answer = Buffer.from(await (await fetch(target, { method: 'POST', headers, body })).arrayBuffer())
      if (held?.isAnswered) {
        held.arrive()
        await held.open
      }
      response.setHeader('content-type', 'application/json')
      response.end(answer)
    } catch {
      request.socket.destroy()
    } finally {
      pending--
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Requests that have not been answered yet. */
    pending: () => pending,
    /**
     * From now on, requests with a matching call wait at the gate: on the way in, or, already answered by the node, on
     * the way out. `arrived` resolves when the first one gets there.
     */
    hold(
      matches: (call: Call) => boolean,
      where: 'in' | 'out' = 'in',
    ): { arrived: Promise<void>; open: () => void } {
      const arrived = Promise.withResolvers<void>()
      const opened = Promise.withResolvers<void>()
      holding = { matches, isAnswered: where === 'out', arrive: arrived.resolve, open: opened.promise }
      // Without a timeout, a call that never comes would keep the test waiting forever.
      const timer = setTimeout(
        () => arrived.reject(new Error('no matching call reached the gate')),
        patienceMs,
      )
      arrived.promise.then(
        () => clearTimeout(timer),
        () => {},
      )
      return {
        arrived: arrived.promise,
        open() {
          holding = null
          opened.resolve()
        },
      }
    },
  }
}
