import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  awaitsTransfer,
  type CheckoutView,
  digestOf,
  findChangedPages,
  payableOn,
  readView,
} from '../../checkouts/view.ts'
import type { Context } from '../../context.ts'
import { openPoll } from '../../database/poll.ts'
import { noteLook } from '../../payments/looks.ts'
import { expectTransfers } from '../../payments/transfers/expect.ts'
import { Problem } from '../../problems.ts'
import { addressBucket } from '../limits.ts'
import { sendJson } from '../route.ts'
import { openStreams, type Stream } from '../streams.ts'

/**
 * Notifies open payment pages when there is something new to show. A page holds one connection of server-sent events, or
 * polls the status; both return the same state. All connections of a process share one listener: on a wake-up, or when
 * its timer fires, one query finds which of the watched checkouts have changed, and only those are read. The first
 * message on a connection is always the current state, so a page that reconnects has missed nothing.
 */
type LiveState = {
  readonly status: string
  readonly version: number
  /** If it differs from the digest that the page was rendered with, there is something new to show. */
  readonly digest: string
  readonly transaction: string | null
  readonly isTransferReserved: boolean
}

type Watched = {
  stamp: string
  sent: string
  /** Until when a plain transfer is expected because of its pages, in milliseconds. */
  expectsUntil: number
  /** Where it can be paid. */
  networks: readonly string[]
  readonly pages: Set<Stream>
}

/** Wake-ups come with every block and every settlement. Checking all pages each time would keep the process busy. */
const lookEveryMs = 100
/** Without wake-ups everything still works, only more slowly. */
const lookAnywayMs = 1_000
const unreadBytesMax = 16_384
/** A buyer pays within this time, or comes back to the page. A tab may stay open for days. */
const expectingMs = 900_000
const expectEveryMs = 2_000
const readsAtOnce = 64
const retryMs = 2_000

export function mountLive(app: FastifyInstance, ctx: Context, path: string): void {
  const watched = new Map<string, Watched>()
  const admit = openPlaces(ctx)
  let expectedAt = 0
  const streams = openStreams(ctx.now, unreadBytesMax, retryMs)

  const shared = openPoll(ctx.db.wakeUps, {
    channel: 'outcomes',
    everyMs: lookAnywayMs,
    spacingMs: lookEveryMs,
    now: ctx.now,
    isNeeded: () => watched.size > 0,
    async poll() {
      const asked = [...watched].map(([checkoutId, { stamp }]) => ({ checkoutId, stamp }))
      const changed = await findChangedPages(ctx.db, asked)
      for (let at = 0; at < changed.length; at += readsAtOnce)
        await Promise.all(changed.slice(at, at + readsAtOnce).map(tell))
      for (const { networks } of watched.values()) noteLook(ctx, networks)
      const now = ctx.now().getTime()
      if (Math.abs(now - expectedAt) < expectEveryMs) return
      expectedAt = now
      const expecting = [...watched].filter(([, { expectsUntil }]) => expectsUntil > now)
      expectTransfers(
        ctx,
        expecting.map(([checkoutId]) => checkoutId),
      )
    },
    onError: (error) =>
      ctx.log.warn(
        { err: error },
        'could not read which open payment pages changed; trying again within a second',
      ),
  })

  async function tell({ checkoutId, stamp }: { checkoutId: string; stamp: string }): Promise<void> {
    const view = await readView(ctx, checkoutId)
    const entry = watched.get(checkoutId)
    if (!view || !entry) return
    entry.stamp = stamp
    entry.expectsUntil = expectsUntil(view)
    entry.networks = payableOn(view)
    const message = render(view)
    if (message === entry.sent) return
    entry.sent = message
    for (const page of entry.pages) page.write(message)
  }

  function expectsUntil(view: CheckoutView): number {
    return awaitsTransfer(view) ? ctx.now().getTime() + expectingMs : 0
  }

  app.addHook('preClose', async () => {
    shared.close()
    streams.close()
  })

  app.get(`${path}/:checkoutId/status`, async (request, reply) => {
    const { checkoutId } = request.params as { checkoutId: string }
    const view = await find(ctx, checkoutId)
    noteLook(ctx, payableOn(view))
    if (awaitsTransfer(view)) expectTransfers(ctx, [checkoutId])
    return sendJson(reply, 200, toState(view))
  })

  app.get(`${path}/:checkoutId/live`, { exposeHeadRoute: false }, async (request, reply) => {
    const { checkoutId } = request.params as { checkoutId: string }
    const leave = admit(request)
    try {
      // Read the stamp before the view: the next poll then finds any change in between.
      const [change] = await findChangedPages(ctx.db, [{ checkoutId, stamp: '' }])
      const view = await find(ctx, checkoutId)
      const message = render(view)
      const networks = payableOn(view)
      const entry = watched.get(checkoutId) ?? {
        stamp: change?.stamp ?? '',
        ...{ sent: message, expectsUntil: 0, networks, pages: new Set() },
      }
      // A tab that reconnects may be one that nobody looks at.
      if (request.headers['last-event-id'] === undefined) entry.expectsUntil = expectsUntil(view)
      watched.set(checkoutId, entry)
      const page = streams.open(reply, message, (stream) => {
        leave()
        entry.pages.delete(stream)
        if (entry.pages.size === 0 && watched.get(checkoutId) === entry) watched.delete(checkoutId)
      })
      entry.pages.add(page)
      shared.begin()
      // This checkout's other pages may have been sent an older or newer state. An empty stamp counts as changed, and
      // what is found then is sent to all of them, even if some have it.
      if (entry.sent !== message) {
        entry.stamp = ''
        entry.sent = ''
      }
    } catch (error) {
      leave()
      throw error
    }
  })
}

/** Limits live connections in total and per address. The returned function gives the place back. */
function openPlaces({ config, metrics }: Context): (request: FastifyRequest) => () => void {
  const perAddress = new Map<string, number>()
  let connections = 0
  return (request) => {
    const address = addressBucket(request.ip)
    const held = perAddress.get(address) ?? 0
    if (connections >= config.liveConnectionsMax || held >= config.liveConnectionsPerAddress) {
      throw new Problem('rate_limited', 'Too many live connections are open. Poll the status URL instead.', {
        retryAfterSeconds: 5,
      })
    }
    connections++
    metrics.livePages.set(connections)
    perAddress.set(address, held + 1)
    return () => {
      connections--
      metrics.livePages.set(connections)
      const left = (perAddress.get(address) ?? 1) - 1
      if (left > 0) perAddress.set(address, left)
      else perAddress.delete(address)
    }
  }
}

async function find(ctx: Context, checkoutId: string): Promise<CheckoutView> {
  const view = await readView(ctx, checkoutId)
  if (!view) throw new Problem('not_found', 'No such checkout.')
  return view
}

function toState(view: CheckoutView): LiveState {
  return {
    status: view.checkout.status,
    version: view.checkout.version,
    digest: digestOf(view),
    transaction: view.payment?.transaction ?? view.pending?.transaction ?? null,
    isTransferReserved: view.transfers.length > 0,
  }
}

function render(view: CheckoutView): string {
  return `id: ${view.checkout.version}\ndata: ${JSON.stringify(toState(view))}\n\n`
}
