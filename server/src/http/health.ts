import { createServer, type Server } from 'node:http'
import type { Context } from '../context.ts'
import { remember } from '../remember.ts'
import { describeVersion } from '../version.ts'

/** Whether this process should get new requests. `isDraining` is set once it is told to stop. */
export type Health = { isDraining: boolean }

/** How long readiness waits for the database: shorter than any load balancer's own timeout. */
const readyTimeoutMs = 2_000

/** Probes come every second or so. Anyone may ask more often, because /readyz has no rate limit. */
const readyForMs = 1_000

/**
 * Ready means that the database answers and the process isn't stopping. Chains, rates and webhooks deliberately don't
 * count: one provider's outage would take every process out of service. The database is asked once per second, no
 * matter how many requests come.
 */
export function openReadyCheck(ctx: Context, health: Health): () => Promise<boolean> {
  const answers = remember(() => isDatabaseAnswering(ctx), {
    forMs: readyForMs,
    entriesMax: 1,
    now: ctx.now,
  })
  return async () => !health.isDraining && (await answers.get('database'))
}

async function isDatabaseAnswering(ctx: Context): Promise<boolean> {
  const timeout = new Promise<boolean>((resolve) => setTimeout(resolve, readyTimeoutMs, false).unref())
  const answered = ctx.db.query('select 1 as one').then(
    () => true,
    () => false,
  )
  return await Promise.race([answered, timeout])
}

/** Serves /livez, /readyz and /metrics on a separate port, so that metrics are never public. */
export async function openHealth(ctx: Context, health: Health): Promise<Server> {
  const isReady = openReadyCheck(ctx, health)
  const server = createServer((request, response) => {
    const answer = (status: number, body: string, type = 'text/plain') =>
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body)
    if (request.url === '/livez') return answer(200, 'alive\n')
    if (request.url === '/readyz') {
      return void isReady().then((ready) => answer(ready ? 200 : 503, ready ? 'ready\n' : 'not ready\n'))
    }
    if (request.url === '/metrics') {
      const { registry } = ctx.metrics
      return void registry.metrics().then(
        (text) => answer(200, text, registry.contentType),
        () => answer(500, 'metrics failed\n'),
      )
    }
    const here = 'Available here: /livez, /readyz, /metrics.\n'
    return request.url === '/'
      ? answer(200, `${describeVersion()}\n${here}`)
      : answer(404, `Not found. ${here}`)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(ctx.config.operationsPort, ctx.config.operationsHost, resolve)
  })
  return server
}
