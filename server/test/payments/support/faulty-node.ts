import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { atEnd } from '../../support/at-end.ts'

type Request = { id: number; method: string }

/** A node between us and the real one that can be told to break: for all calls, or for some methods only. */
export async function openFaultyNode(target: string) {
  let held: Promise<void> | null = null
  let heldMethod: string | null = null
  let holding = 0
  let break_: (methods: readonly string[]) => 'cut' | 'error' | null = () => null
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const parsed = JSON.parse(body) as Request | Request[]
    const calls = [parsed].flat()
    const fault = break_(calls.map(({ method }) => method))
    if (fault === 'cut') return request.socket.destroy()
    response.setHeader('content-type', 'application/json')
    if (fault === 'error') {
      const answers = calls.map(({ id }) => ({
        jsonrpc: '2.0',
        id,
        error: { code: -32603, message: 'internal error' },
      }))
      return response.end(JSON.stringify(Array.isArray(parsed) ? answers : answers[0]))
    }
    const answer = await fetch(target, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    const text = await answer.text()
    if (calls.some(({ method }) => method === heldMethod)) {
      holding++
      await held
      holding--
    }
    return response.end(text)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Every request that has one of these methods in it; no methods mean every request. */
    fail(fault: 'cut' | 'error', ...only: readonly string[]): void {
      break_ = (methods) =>
        only.length === 0 || methods.some((method) => only.includes(method)) ? fault : null
    },
    /** The same for the next requests only. */
    failTimes(fault: 'cut' | 'error', times: number, ...only: readonly string[]): void {
      let left = times
      break_ = (methods) =>
        left > 0 && methods.some((method) => only.includes(method)) && left-- > 0 ? fault : null
    },
    /** Keeps back the answers to a method, given by the node as it is now, until the returned function is called. */
    hold(method: string): () => void {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      heldMethod = method
      return () => {
        heldMethod = null
        resolve()
      }
    },
    /** How many answers are kept back now. */
    holding: () => holding,
    heal(): void {
      break_ = () => null
    },
  }
}
