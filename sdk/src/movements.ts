import { FarthingError } from './errors.ts'
import { type List, openList, type PageQuery } from './list.ts'
import { type OpenFile, path, type RequestOptions, type Send } from './request.ts'
import type { Movement } from './wire.ts'

/** Which lines: those of a month in the store's time zone, such as 2026-10, or those booked within times. */
export type MovementPeriod =
  | { readonly month?: string; readonly bookedFrom?: never; readonly bookedBefore?: never }
  | {
      readonly month?: never
      /** Booked at or after this time, in ISO 8601. */
      readonly bookedFrom?: string
      /** Booked before this time, in ISO 8601. */
      readonly bookedBefore?: string
    }

export type MovementQuery = PageQuery &
  MovementPeriod & {
    /** Adds payer, recipient, description and note as they are today. */
    readonly details?: boolean
  }

export type MovementFileQuery = RequestOptions &
  MovementPeriod & {
    readonly format: 'csv' | 'ndjson'
    readonly details?: boolean
  }

/** All lines of a period as one file, read while it arrives. If it breaks off, reading `body` throws. */
export type MovementFile = {
  /** How many lines there are. A heading of a CSV file is not one. */
  readonly lines: number
  /** Whether the period is over, so that the file is the same whenever it is read again. */
  readonly isClosed: boolean
  readonly body: ReadableStream<Uint8Array>
}

const types = { csv: 'text/csv', ndjson: 'application/x-ndjson' }

export function openMovements(send: Send, openFile: OpenFile) {
  return {
    /** The store's books, oldest first. A line never changes. */
    list: (query?: MovementQuery): List<Movement> => openList(send, path`/movements`, query as PageQuery),
    file: async ({ format, signal, details, ...period }: MovementFileQuery): Promise<MovementFile> => {
      const query = { ...period, ...(details && { details: 'true' }) }
      const answer = await openFile(
        { path: path`/movements`, query, ...(signal && { signal }) },
        types[format],
      )
      const lines = answer.headers.get('farthing-lines')
      if (lines === null || !answer.body)
        throw new FarthingError({
          code: 'unreadable_answer',
          detail: 'The answer is not a file of movements. Is baseUrl right, and is the server new enough?',
          status: answer.status,
        })
      return {
        lines: Number.parseInt(lines, 10),
        isClosed: answer.headers.get('farthing-closed') === 'true',
        body: answer.body,
      }
    },
  }
}
