import { createServer, type Server } from 'node:http'
import type { Context } from '../context.ts'

/** Whether this process should be sent work. `isDraining` is set when it has been asked to stop. */
export type Health = { isDraining: boolean }

/** How long readiness waits for the database: shorter than any balancer's own limit. */
const readyTimeoutMs = 2_000

/**
 * Ready means: the database answers and we are not stopping. Deliberately not: chains, rates or webhooks, because one
 * provider's outage would then take every process out of service.
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

/** The operators' door, on a port of its own so that metrics never face the public: /livez, /readyz, /metrics. */
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
    return answer(404, 'Ask for /livez, /readyz or /metrics.\n')
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(ctx.config.operationsPort, ctx.config.operationsHost, resolve)
  })
  return server
}
