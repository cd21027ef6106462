import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { findChangedPages } from '../../checkouts/page-rows.ts'
import { type CheckoutView, digestOf, readView } from '../../checkouts/view.ts'
import type { Context } from '../../context.ts'
import { openLook } from '../../database/look.ts'
import { Problem } from '../../problems.ts'
import { addressBucket } from '../limits.ts'
import { sendJson } from '../route.ts'

/**
 * Tells open payment pages that there is something new to show. A page holds one connection of server-sent events, or
 * asks for the status now and then; both say the same. All connections of a process share one listener: a wake-up, or
 * the clock, makes it ask in one query which of the checkouts that are being watched have changed, and only those are
 * read. What a page missed while it was away it is told in one when it comes back, because the first thing that is sent
 * is always the present state.
 */
type LiveState = {
  readonly status: string
  readonly version: number
  /** Another than the page was made with: there is something new to show. */
  readonly digest: string
  readonly transaction: string | null
  readonly isTransferReserved: boolean
}

type Watched = { stamp: string; sent: string; readonly pages: Set<Page> }
type Page = { readonly response: ServerResponse; readonly openedAt: number }

/** Wake-ups come with every block and every settlement; a look at all pages that often would be all we do. */
const lookEveryMs = 100
/** Everything works without wake-ups, only slower. */
const lookAnywayMs = 1_000
/** Shorter than the time after which proxies drop what is silent. */
const heartbeatMs = 15_000
/** So that connections spread over the processes again after one was restarted, and forgotten tabs are let go. */
const ageMaxMs = 15 * 60_000
/** A page that does not read this much has gone away. */
const unreadBytesMax = 16_384
const readsAtOnce = 64
const retryMs = 2_000

export function mountLive(app: FastifyInstance, ctx: Context, path: string): void {
  const watched = new Map<string, Watched>()
  const perAddress = new Map<string, number>()
  let connections = 0
  let isClosing = false

  const shared = openLook(ctx.db.wakeUps, {
    channel: 'outcomes',
    everyMs: lookAnywayMs,
    spacingMs: lookEveryMs,
    now: ctx.now,
    isNeeded: () => watched.size > 0,
    async look() {
      const asked = [...watched].map(([checkoutId, { stamp }]) => ({ checkoutId, stamp }))
      const changed = await findChangedPages(ctx.db, asked)
      for (let at = 0; at < changed.length; at += readsAtOnce)
        await Promise.all(changed.slice(at, at + readsAtOnce).map(tell))
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
    const message = render(view)
    if (message === entry.sent) return
    entry.sent = message
    for (const page of entry.pages) write(page, message)
  }

  function write({ response }: Page, text: string): void {
    if (response.writableLength > unreadBytesMax) response.destroy()
    else if (!response.writableEnded) response.write(text)
  }

  const heartbeat = setInterval(() => {
    const oldest = ctx.now().getTime() - ageMaxMs
    for (const { pages } of watched.values())
      for (const page of pages) {
        if (page.openedAt < oldest) page.response.end()
        else write(page, ':\n\n')
      }
  }, heartbeatMs)
  heartbeat.unref()

  // Before the server waits for open connections to end: these would not end by themselves.
  app.addHook('preClose', async () => {
    isClosing = true
    clearInterval(heartbeat)
    shared.close()
    for (const { pages } of watched.values())
      for (const { response } of pages) {
        // Not all at once to whoever is left.
        response.end(`retry: ${retryMs + Math.floor(Math.random() * retryMs)}\n\n`)
      }
  })

  function admit(request: FastifyRequest): () => void {
    const address = addressBucket(request.ip)
    const held = perAddress.get(address) ?? 0
    if (connections >= ctx.config.liveConnectionsMax || held >= ctx.config.liveConnectionsPerAddress) {
      throw new Problem('rate_limited', 'Too many live connections are open. Poll the status URL instead.', {
        retryAfterSeconds: 5,
      })
    }
    connections++
    ctx.metrics.livePages.set(connections)
    perAddress.set(address, held + 1)
    return () => {
      connections--
      ctx.metrics.livePages.set(connections)
      const left = (perAddress.get(address) ?? 1) - 1
      if (left > 0) perAddress.set(address, left)
      else perAddress.delete(address)
    }
  }

  app.get(`${path}/:checkoutId/status`, async (request, reply) => {
    const { checkoutId } = request.params as { checkoutId: string }
    return sendJson(reply, 200, toState(await find(ctx, checkoutId)))
  })

  app.get(`${path}/:checkoutId/live`, async (request, reply) => {
    const { checkoutId } = request.params as { checkoutId: string }
    const leave = admit(request)
    try {
      // First the stamp, then the view: what changes in between is found by the next look.
      const [change] = await findChangedPages(ctx.db, [{ checkoutId, stamp: '' }])
      const message = render(await find(ctx, checkoutId))
      reply.hijack()
      const response = reply.raw
      response.writeHead(200, {
        ...(reply.getHeaders() as Record<string, string>),
        'content-type': 'text/event-stream; charset=utf-8',
        // Proxies of the nginx kind would keep events until there are enough of them.
        'x-accel-buffering': 'no',
      })
      response.write(`retry: ${retryMs}\n${message}`)
      const page = { response, openedAt: ctx.now().getTime() }
      const entry = watched.get(checkoutId) ?? { stamp: change?.stamp ?? '', sent: message, pages: new Set() }
      watched.set(checkoutId, entry)
      entry.pages.add(page)
      shared.begin()
      // The others of this checkout may have been told less, or more, than this one.
      if (entry.sent !== message) entry.stamp = ''
      const forget = () => {
        leave()
        entry.pages.delete(page)
        if (entry.pages.size === 0 && watched.get(checkoutId) === entry) watched.delete(checkoutId)
      }
      // It may have gone away while we read, and then says so no more.
      if (response.closed || response.socket?.destroyed !== false) forget()
      else response.once('close', forget)
      if (isClosing) response.end()
    } catch (error) {
      leave()
      throw error
    }
  })
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
    transaction: view.payment?.transaction ?? view.pendingTransaction,
    isTransferReserved: view.transfers.length > 0,
  }
}

function render(view: CheckoutView): string {
  return `id: ${view.checkout.version}\ndata: ${JSON.stringify(toState(view))}\n\n`
}
