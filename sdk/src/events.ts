import { FarthingError } from './errors.ts'
import { path, type RequestOptions, type Send } from './request.ts'
import { delayMs, wait } from './wait.ts'
import type { Event, EventPage, EventType } from './wire.ts'

/**
 * The event log: numbered 1, 2, 3 … without gaps, so whoever goes on from a cursor cannot miss anything, whatever became
 * of webhooks, connections or processes. Cursors never run out.
 */

export type EventFilter = RequestOptions & {
  readonly type?: EventType
  readonly checkoutId?: string
}

export type EventQuery = EventFilter & {
  /** From here on; left out: from the beginning. */
  readonly after?: string
  /** 1 to 100. */
  readonly limit?: number
  /** An empty page is held back for up to so long until something happens; at most 30. */
  readonly waitSeconds?: number
}

/** An event, and the cursor to go on from once it is dealt with. */
export type LogEntry = { readonly event: Event; readonly cursor: string }

export type Sync = EventFilter & {
  /** Where the last sync ended; null or left out: the beginning. */
  readonly cursor?: string | null
  /**
   * Called for one event after the other, in order. Do the work and store the cursor in one transaction, and nothing is
   * missed or done twice. If it throws, the sync ends with that error; start it again from the stored cursor.
   */
  readonly onEvent: (event: Event, cursor: string) => unknown
}

const pageLimit = 100
const holdSeconds = 25
/** No checkout has this id, so a look for its events passes over the whole log at once. */
const nobody = `ch_00${'0'.repeat(26)}`

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

  /** A page from after the cursor. A log that an operator put back to an earlier point says where to go on. */
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

    /** The cursor of the log's end, or of so many events before it: what happens from now on comes after it. */
    async end({
      before = 0,
      ...options
    }: RequestOptions & { readonly before?: number } = {}): Promise<string> {
      const { cursor } = await list({ ...options, checkoutId: nobody, limit: 1 })
      return cursor.replace(/\d+$/, (last) => String(Math.max(0, Number.parseInt(last, 10) - before)))
    },

    /**
     * Everything after the cursor, then what happens, as it happens, until the signal is aborted. Outages are waited
     * out; only a refusal ends it.
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
     * Brings you up to date: hands over everything since the cursor and returns the cursor to begin with next time. Run
     * it at start, from time to time, or after each webhook: a lost webhook then changes nothing.
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

/** A cursor is the log's epoch and the sequence of the last event that was read; a page tells it for its last one. */
function entriesOf({ data, cursor }: EventPage): LogEntry[] {
  return data.map((event) => ({ event, cursor: cursor.replace(/\d+$/, String(event.sequence)) }))
}

function isOutage({ status }: FarthingError): boolean {
  return status === null || status === 429 || status >= 500
}
