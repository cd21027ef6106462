/**
 * A hostile store's programs, in a process of their own: so many changes of its settings are always under way, spread over
 * its keys, until this process is ended. Says on standard output what was answered, once a second.
 */
import { Agent, request } from 'node:http'

type Flood = {
  readonly url: string
  readonly storeId: string
  readonly keys: readonly string[]
  readonly atOnce: number
}

const { url, storeId, keys, atOnce } = JSON.parse(process.argv[2] ?? '') as Flood
const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
const counts: Record<string, number> = {}
let sent = 0

function change(key: string): Promise<number> {
  return new Promise((resolve) => {
    const asked = request(
      `${url}/api/v1/stores/${storeId}`,
      { method: 'PATCH', agent, headers: { 'x-api-key': key, 'content-type': 'application/json' } },
      (answer) => answer.resume().once('end', () => resolve(answer.statusCode ?? 0)),
    )
    asked.once('error', () => resolve(0))
    asked.end(JSON.stringify({ name: `Hostile ${sent++}` }))
  })
}

setInterval(() => process.stdout.write(`${JSON.stringify(counts)}\n`), 250)
for (let i = 0; i < atOnce; i++)
  void (async () => {
    for (;;) {
      const status = await change(keys[i % keys.length] ?? '')
      counts[status] = (counts[status] ?? 0) + 1
      // As the answer asks.
      if (status === 429) await new Promise((resolve) => setTimeout(resolve, 1_000))
    }
  })()
