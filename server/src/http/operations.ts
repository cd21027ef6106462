import { createServer, type Server } from 'node:http'
import type { Context } from '../context.ts'

/** Whether this process should get new requests. `isDraining` is set once it is told to stop. */
export type Health = { isDraining: boolean }

/** How long readiness waits for the database: shorter than any load balancer's own timeout. */
const readyTimeoutMs = 2_000

/**
 * Ready means that the database answers and the process isn't stopping. Chains, rates and webhooks deliberately don't
 * count: one provider's outage would take every process out of service.
 */
export async function isReady(ctx: Context, health: Health): Promise<boolean> {
  if (health.isDraining) return false
  const timeout = new Promise<boolean>((resolve) => setTimeout(resolve, readyTimeoutMs, false).unref())
  const answered = ctx.db.query('select 1 as one').then(
    () => true,
    () => false,
  )
  return await Promise.race([answered, timeout])
}

/** Serves /livez, /readyz and /metrics on a separate port, so that metrics are never public. */
export async function openOperations(ctx: Context, health: Health): Promise<Server> {
  const server = createServer((request, response) => {
    const answer = (status: number, body: string, type = 'text/plain') =>
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body)
    if (request.url === '/livez') return answer(200, 'alive\n')
    if (request.url === '/readyz') {
      return void isReady(ctx, health).then((ready) =>
        answer(ready ? 200 : 503, ready ? 'ready\n' : 'not ready\n'),
      )
    }
    if (request.url === '/metrics') {
      const { registry } = ctx.metrics
      return void registry.metrics().then(
        (text) => answer(200, text, registry.contentType),
        () => answer(500, 'metrics failed\n'),
      )
    }
    return answer(404, 'Not found. Available here: /livez, /readyz, /metrics.\n')
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(ctx.config.operationsPort, ctx.config.operationsHost, resolve)
  })
  return server
}
