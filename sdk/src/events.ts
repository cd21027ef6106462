import { FarthingError } from './errors.ts'
import { path, type RequestOptions, type Send } from './request.ts'
import { delayMs, wait } from './wait.ts'
import type { Event, EventPage, EventType } from './wire.ts'

/**
 * The event log. Events are numbered 1, 2, 3 … without gaps, so a reader that continues from its cursor misses
 * nothing, even if webhooks, connections or processes fail. Cursors never expire.
 */

/** All types that begin alike: `wallet.*`. */
export type EventKind = `${EventType extends `${infer Kind}.${string}` ? Kind : never}.*`

export type EventFilter = RequestOptions & {
  readonly type?: EventType | EventKind
  readonly checkoutId?: string
  /** The id of a key, member or operator: only what it caused. */
  readonly actor?: string
}

export type EventQuery = EventFilter & {
  /** Only events after this cursor. Default: from the beginning. */
  readonly after?: string
  /** 1 to 100. */
  readonly limit?: number
  /** Long polling: if the page is empty, the server waits up to this long for an event. At most 30. */
  readonly waitSeconds?: number
}

/** An event, and the cursor to continue from once you have handled it. */
export type LogEntry = { readonly event: Event; readonly cursor: string }

export type Sync = EventFilter & {
  /** The cursor that the last sync returned. Null or omitted: from the beginning. */
  readonly cursor?: string | null
  /**
   * Called for one event at a time, in order. Do the work and store the cursor in one transaction, and nothing is
   * missed or done twice. If it throws, the sync rejects with that error; start it again from the stored cursor.
   */
  readonly onEvent: (event: Event, cursor: string) => unknown
}

const pageLimit = 100
const holdSeconds = 25
/** No checkout has this id, so a query for its events returns an empty page and the cursor of the log's end. */
const noCheckout = `ch_00${'0'.repeat(26)}`

export function openEvents(send: Send) {
  const list = async ({ signal, ...query }: EventQuery = {}): Promise<EventPage> =>
    await send<EventPage>({
      method: 'GET',
      path: path`/events`,
      query,
      isRepeatable: true,
      holdMs: (query.waitSeconds ?? 0) * 1_000,
      ...(signal && { signal }),
    })

  /** The next page. If the operator has restored the log to an earlier point, continues where the server says. */
  const next = async (query: EventQuery): Promise<EventPage> => {
    try {
      return await list(query)
    } catch (error) {
      const resumeAfter = error instanceof FarthingError ? error.problem?.resumeAfter : undefined
      if (typeof resumeAfter !== 'string') throw error
      return await list({ ...query, after: resumeAfter })
    }
  }

  return {
    list,

    /** The cursor of the log's end, or of `before` events earlier. All later events come after it. */
    async end({
      before = 0,
      ...options
    }: RequestOptions & { readonly before?: number } = {}): Promise<string> {
      const { cursor } = await list({ ...options, checkoutId: noCheckout, limit: 1 })
      return cursor.replace(/\d+$/, (last) => String(Math.max(0, Number.parseInt(last, 10) - before)))
    },

    /**
     * Yields every event after the cursor, then new events as they happen, until the signal is aborted. It waits out
     * outages; only a refusal by the server (a 4xx other than 429) ends it, with a `FarthingError`.
     */
    async *stream({
      after,
      ...filter
    }: EventFilter & { readonly after?: string } = {}): AsyncGenerator<LogEntry, void> {
      const { signal } = filter
      let cursor = after
      let failures = 0
      while (!signal?.aborted) {
        try {
          const page = await next({
            ...filter,
            ...(cursor !== undefined && { after: cursor }),
            limit: pageLimit,
            waitSeconds: holdSeconds,
          })
          failures = 0
          yield* entriesOf(page)
          cursor = page.cursor
        } catch (error) {
          if (signal?.aborted) return
          if (!(error instanceof FarthingError) || !isOutage(error)) throw error
          await wait(delayMs(++failures, error.retryAfterSeconds), signal)
        }
      }
    },

    /**
     * Brings you up to date: calls `onEvent` for every event after the cursor and returns the cursor to start from next
     * time. Run it at startup, periodically, or after each webhook, and a lost webhook does no harm.
     */
    async sync({ cursor, onEvent, ...filter }: Sync): Promise<string> {
      let after = cursor ?? undefined
      for (;;) {
        const page = await next({ ...filter, ...(after !== undefined && { after }), limit: pageLimit })
        for (const entry of entriesOf(page)) await onEvent(entry.event, entry.cursor)
        after = page.cursor
        if (!page.hasMore) return after
      }
    },
  }
}

/** A cursor is the log's epoch and the last event's sequence. The page carries the cursor of its last event. */
function entriesOf({ data, cursor }: EventPage): LogEntry[] {
  return data.map((event) => ({ event, cursor: cursor.replace(/\d+$/, String(event.sequence)) }))
}

function isOutage({ status }: FarthingError): boolean {
  return status === null || status === 429 || status >= 500
}
