import type { StoreClient } from '../../support/store.ts'

/** A call of an operation, and the status that it must get. */
export type Call = {
  readonly status: number
  readonly by?: StoreClient | null
  readonly path?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}
