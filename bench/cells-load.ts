/** A steady load on cells: the same number of requests per second to each, whatever the answers are. */
import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'

/** One store's side of the load. */
export type Shop = { readonly tag: string; readonly apiKey: string }

export type Kind = 'create' | 'read' | 'page' | 'list'

export type Seen = {
  readonly tag: string
  readonly kind: Kind
  /** 0 if the connection broke or no answer came. */
  readonly status: number
  readonly reason: string
  readonly tookMs: number
  /** When it was sent, by performance.now(). */
  readonly sentAt: number
}

export type SteadyLoad = {
  /** Everything answered so far. */
  readonly seen: readonly Seen[]
  /** The ids of all checkouts that a 201 has acknowledged. */
  readonly created: readonly { readonly tag: string; readonly id: string }[]
  /** Stops sending and waits for the requests in progress. */
  stop(): Promise<readonly Seen[]>
}

const tickMs = 5
/** Longer than any proxy waits before it answers by itself. */
const answerMsMax = 90_000
/** A shop's usual requests: mostly buyers who read its checkouts. */
export const mixed: readonly Kind[] = ['create', 'page', 'read', 'page', 'list', 'read']

/** Sends `perSecond` evenly spaced requests to each shop, of these kinds in turn. */
export function startLoad(
  url: string,
  shops: readonly Shop[],
  perSecond: number,
  kinds: readonly Kind[] = mixed,
): SteadyLoad {
  const agent = new Agent({ keepAlive: true })
  const seen: Seen[] = []
  const underWay = new Set<Promise<void>>()
  const created: { tag: string; id: string }[] = []
  const newest = new Map<string, string>()
  const startedAt = performance.now()
  let sent = 0

  const send = async (shop: Shop, wanted: Kind): Promise<void> => {
    const id = newest.get(shop.tag)
    const kind = id === undefined ? 'create' : wanted
    const sentAt = performance.now()
    const { status, body, reason } = await ask(agent, url, shop, kind, id ?? '')
    if (kind === 'create' && status === 201) {
      const made = JSON.parse(body).id
      newest.set(shop.tag, made)
      created.push({ tag: shop.tag, id: made })
    }
    seen.push({ tag: shop.tag, kind, status, reason, tookMs: performance.now() - sentAt, sentAt })
  }

  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) / 1_000) * perSecond)
    for (; sent < due; sent++)
      for (const shop of shops) {
        const answered = send(shop, kinds[sent % kinds.length] ?? 'create').finally(() =>
          underWay.delete(answered),
        )
        underWay.add(answered)
      }
  }, tickMs)

  return {
    seen,
    created,
    async stop() {
      clearInterval(timer)
      await Promise.all(underWay)
      agent.destroy()
      return seen
    },
  }
}

/** Whether a request succeeded. */
export function isServed({ status }: Seen): boolean {
  return status === 200 || status === 201
}

type Answer = { readonly status: number; readonly body: string; readonly reason: string }

function ask(agent: Agent, url: string, shop: Shop, kind: Kind, id: string): Promise<Answer> {
  const body =
    kind === 'create'
      ? JSON.stringify({ orderId: 'order-1', priceAmount: '12.50', priceCurrency: 'USD' })
      : ''
  const path = {
    create: '/api/v1/checkouts',
    read: `/api/v1/checkouts/${id}`,
    page: `/pay/${id}`,
    list: '/api/v1/checkouts?limit=10',
  }[kind]
  const headers = {
    ...(kind === 'page' ? { accept: 'text/html' } : { 'x-api-key': shop.apiKey }),
    ...(kind === 'create' && {
      'content-type': 'application/json',
      'content-length': body.length,
      'idempotency-key': randomUUID(),
    }),
  }
  return new Promise((resolve) => {
    const fail = (error: Error) => resolve({ status: 0, body: '', reason: error.message })
    const options = {
      agent,
      method: kind === 'create' ? 'POST' : 'GET',
      headers,
      signal: AbortSignal.timeout(answerMsMax),
    }
    const asked = request(url + path, options, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('error', fail)
      response.on('end', () => {
        const status = response.statusCode ?? 0
        resolve({ status, body: text, reason: status < 300 ? '' : text.slice(0, 200) })
      })
    })
    asked.on('error', fail)
    asked.end(body)
  })
}
