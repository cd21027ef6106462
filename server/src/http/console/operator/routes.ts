import type { FastifyInstance } from 'fastify'
import { measureDecisions } from '../../../checkouts/payments/apply-decisions.ts'
import type { Context } from '../../../context.ts'
import { measureUnnumbered } from '../../../events/rows.ts'
import { measureEndpoints } from '../../../events/webhooks/endpoints.ts'
import { measureMails } from '../../../mails/send.ts'
import { Refusal } from '../../../members/refusal.ts'
import { networks } from '../../../networks.ts'
import { openChainStates } from '../../../payments/chain-states.ts'
import type { Rails } from '../../../payments/rail.ts'
import { openRails } from '../../../payments/rails.ts'
import { listSettlers, measureInFlight, type Settler } from '../../../payments/settlers/rows.ts'
import { type Runway, readRunways } from '../../../payments/settlers/runway.ts'
import { pageRoutes } from '../screen.ts'
import { sessionOf } from '../visitor.ts'
import { mountStores } from './stores/routes.ts'
import {
  countMax,
  type Examined,
  type Finding,
  type FundedSettler,
  type QueueRow,
  renderChains,
  renderDoctor,
  renderQueues,
  renderSettlers,
} from './view.ts'

/**
 * The deployment as its operators see it: over all stores, with the rights of `serve`, which the console's own role does
 * not have. Its screens show counts, ages, names and accounts, never a store's payments.
 */
export type Deployment = {
  readonly ctx: Context
  /** The findings of `doctor` here. */
  examine(): Promise<readonly Finding[]>
}

/** A node has 5 seconds for each of a few calls. No operator waits longer than this for a page. */
const timeoutMs = 25_000
/** Results are reused for this long, so that repeated clicks do not ask the nodes. */
const freshMs = 5_000

/** The operator's screens. For everybody else they do not exist. */
export function mountOperator(scope: FastifyInstance, ctx: Context, deployment: Deployment): void {
  const rails = openRails(deployment.ctx)
  const readChains = openChainStates(deployment.ctx, rails)
  const examine = openDoctor(ctx, deployment)
  void scope.register(async (inner) => {
    inner.addHook('preHandler', async (request) => {
      if (!sessionOf(request).member.isOperator) throw new Refusal('not_found')
    })
    const routes = pageRoutes(inner, ctx)
    const { get } = routes
    mountStores(routes, ctx, deployment.ctx)

    get('/operator/settlers', async (page) => {
      const { title } = page.texts.health.settlers
      const settlers = await readSettlers(deployment.ctx, rails)
      return await page.send({ screen: 'settlers', title, main: renderSettlers(page, settlers) })
    })

    get('/operator/chains', async (page) => {
      const { title } = page.texts.health.chains
      return await page.send({ screen: 'chains', title, main: renderChains(page, await readChains()) })
    })

    get('/operator/queues', async (page) => {
      const { title } = page.texts.health.queues
      const rows = await readQueues(deployment.ctx)
      const { operationsPort } = deployment.ctx.config
      return await page.send({ screen: 'queues', title, main: renderQueues(page, rows, operationsPort) })
    })

    // Reading changes nothing, so this is a GET. Without `run` no check is made.
    get('/operator/doctor', async (page) => {
      const { title } = page.texts.health.doctor
      const isAsked = (page.request.query as Readonly<Record<string, unknown>>).run !== undefined
      const examined = isAsked ? await examine() : null
      return await page.send({ screen: 'doctor', title, main: renderDoctor(page, examined) })
    })
  })
}

/** Every settler with how long its balance lasts. Retired ones come last. */
async function readSettlers(ctx: Context, rails: Rails): Promise<FundedSettler[]> {
  const settlers = await listSettlers(ctx.db, null)
  const runways = new Map<string, Runway>()
  for (const caip2 of new Set(settlers.map(({ network }) => network))) {
    const rail = rails.get(caip2)
    if (!rail) continue
    for (const runway of await readRunways(ctx, rail)) runways.set(`${caip2} ${runway.address}`, runway)
  }
  const isOver = ({ state }: Settler) => state === 'retired'
  return [...settlers.filter((each) => !isOver(each)), ...settlers.filter(isOver)].map((settler) => ({
    settler,
    runway: runways.get(`${settler.network} ${settler.address}`) ?? null,
  }))
}

async function readQueues({ db, config }: Context): Promise<QueueRow[]> {
  const offered = networks.filter(({ id }) => config.networks.includes(id))
  const [inFlight, decisions, events, endpoints, mails] = await Promise.all([
    Promise.all(offered.map(({ caip2 }) => measureInFlight(db, caip2, countMax))),
    measureDecisions(db),
    measureUnnumbered(db, countMax),
    measureEndpoints(db),
    measureMails(db),
  ])
  const network = ''
  return [
    ...offered.flatMap(({ name }, i) =>
      (['claimed', 'sent'] as const).map((id) => ({
        id,
        network: name,
        queue: inFlight[i]?.[id] ?? { count: 0, oldestAt: null },
      })),
    ),
    { id: 'decisions', network, queue: decisions },
    { id: 'events', network, queue: events },
    { id: 'due', network, queue: endpoints.due },
    { id: 'failing', network, queue: endpoints.failing },
    { id: 'disabled', network, queue: { count: endpoints.disabled, oldestAt: null } },
    { id: 'mails', network, queue: mails },
  ]
}

/** Runs `doctor` at most once at a time, for all operators together. */
function openDoctor(ctx: Context, deployment: Deployment): () => Promise<Examined> {
  let last: { readonly startedAt: number; readonly result: Promise<Examined> } | null = null
  let isRunning = false
  return () => {
    const startedAt = ctx.now().getTime()
    if (last && (isRunning || startedAt - last.startedAt < freshMs)) return last.result
    isRunning = true
    const whole = deployment.examine().finally(() => {
      isRunning = false
    })
    const result = withLimit(whole).then((findings) => ({ at: ctx.now(), findings }))
    last = { startedAt, result }
    return result
  }
}

/** Null if it takes too long. Its open calls then end by themselves. */
async function withLimit(findings: Promise<readonly Finding[]>): Promise<readonly Finding[] | null> {
  const { promise, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(resolve, timeoutMs, null)
  return await Promise.race([findings, promise]).finally(() => clearTimeout(timer))
}
