/**
 * Fills a migrated database with a month of a service in use:
 * `node bench/fill.ts --database URL --checkouts 1000000 --seed 1`.
 *
 * Every checkout has all its rows, and they agree: its events, numbered without gaps in each store's log, the stored
 * answer for its idempotency key, the authorization, the transaction that carried it, and the credit. Nothing is in
 * progress, so a `work` process only deletes old answers and expires checkouts when their time comes. Rows are inserted
 * in order of time and through the indexes, so the indexes look as they do in production.
 *
 * The seed and the end time determine everything: the same two give the same rows. Statements are in fill-rows.ts.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { parseArgs } from 'node:util'
import { toShown } from '../server/src/chains/families.ts'
import { type Database, openDatabase } from '../server/src/database/db.ts'
import type { StoreId } from '../server/src/ids.ts'
import { whole } from './figures.ts'
import { filled, genesisSeconds, type Plan } from './fill-functions.ts'
import { fillRollups } from './fill-rollups.ts'
import { analyze, fillCheckouts, fillEvents, makeFacts, makeStores, tidyUp } from './fill-rows.ts'

export type FillOptions = {
  readonly stores: number
  readonly checkouts: number
  readonly seed: string
  /** The end time. Unpaid checkouts that are younger than a day at that time are open. */
  readonly until: Date
  /** The URL of payment pages, without the checkout's id, as the service has it. */
  readonly pageUrl?: string
  /** For how long answers are kept: the product deletes them after two days. */
  readonly answersHours?: number
  /** Checkouts per transaction. */
  readonly chunk?: number
  /** Called with the number of checkouts written, and awaited. */
  readonly onProgress?: (checkouts: number) => void | Promise<void>
  /** The time over which the checkouts are spread; a month by default. */
  readonly days?: number
}

/** Bounds the memory and the length of one transaction. */
const chunkDefault = 20_000
/** Checkouts that are further apart are not paid in one transaction. */
const busySpacingMs = 900_000
const paymentsPerTransaction = 4
const monthDays = 30
const dayMs = 86_400_000

/** Returns the ids of the stores, in order. `db` must have four connections or more, half of which run transactions. */
export async function fill(db: Database, options: FillOptions): Promise<StoreId[]> {
  const { stores, checkouts, seed, until, chunk = chunkDefault } = options
  const spanMs = (options.days ?? monthDays) * dayMs
  const spacingMs = Math.max(1, Math.floor(spanMs / Math.max(1, checkouts)))
  const plan: Plan = {
    seed,
    checkouts,
    spacingMs,
    startMs: until.getTime() - spacingMs * checkouts,
    untilMs: until.getTime(),
    perTransaction: spacingMs <= busySpacingMs ? paymentsPerTransaction : 1,
    pageUrl: options.pageUrl ?? 'https://farthing.example/pay',
    answersHours: options.answersHours ?? 48,
  }
  const made = Array.from({ length: stores }, (_, i) => makeStore(seed, i))
  const ids = await makeStores(db, plan, made)
  assert(stores > 0 || checkouts === 0, 'checkouts need a store')
  if (checkouts > 0) await makeFacts(db, plan, ids)
  for (let first = 1; first <= checkouts; first += chunk) {
    const last = Math.min(checkouts, first + chunk - 1)
    // Two transactions at a time. Events take three times as long as everything else, so this split gives both the same
    // amount of work.
    const withCheckouts = async () => {
      await fillCheckouts(db, plan, first, last)
      await fillEvents(db, plan, first, last, [0])
    }
    await Promise.all([withCheckouts(), fillEvents(db, plan, first, last, [1, 2])])
    await options.onProgress?.(last)
  }
  await fillRollups(db)
  await tidyUp(db)
  return ids
}

/** The chain's newest block at this time. */
export function blockAt(time: Date): number {
  return Math.floor((time.getTime() / 1_000 - genesisSeconds) / 2)
}

/** Names, and addresses that are written as the API writes them. */
function makeStore(seed: string, i: number) {
  const digest = createHash('sha256').update(`${seed} store ${i}`).digest('hex')
  const words = ['Corner', 'Harbour', 'North', 'Garden', 'Paper', 'Velvet', 'Copper', 'Meadow']
  const wares = ['Books', 'Coffee', 'Records', 'Prints', 'Bikes', 'Tea', 'Games', 'Ceramics']
  const word = (from: readonly string[], at: number) =>
    from[Number.parseInt(digest.slice(at, at + 4), 16) % from.length]
  return {
    name: `${word(words, 0)} ${word(wares, 4)} ${i + 1}`,
    evmAddress: toShown(filled.network, `0x${digest.slice(0, 40)}`),
    // Base58 has the digits from 1 to 9.
    solanaAddress: digest.slice(0, 44).replace(/[0a-f]/g, (digit) => String(1 + (digit.charCodeAt(0) % 9))),
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      database: { type: 'string' },
      checkouts: { type: 'string', default: '100000' },
      stores: { type: 'string', default: '200' },
      seed: { type: 'string', default: '1' },
      /** An ISO 8601 time; now by default. */
      until: { type: 'string' },
      'page-url': { type: 'string' },
    },
  })
  assert(values.database, '--database must be the URL of a migrated database')
  const checkouts = whole('checkouts', values.checkouts, 0, 100_000_000)
  const until = values.until === undefined ? new Date() : new Date(values.until)
  assert(!Number.isNaN(until.getTime()), '--until must be an ISO 8601 time')
  const db = openDatabase({ url: values.database, connections: 4, name: 'fill' })
  const start = performance.now()
  try {
    await fill(db, {
      stores: whole('stores', values.stores, 1, 10_000),
      checkouts,
      seed: values.seed,
      until,
      ...(values['page-url'] !== undefined && { pageUrl: values['page-url'] }),
      onProgress: (done) => {
        process.stderr.write(
          `${done} of ${checkouts} checkouts, ${Math.round((performance.now() - start) / 1_000)} s\n`,
        )
      },
    })
    await analyze(db)
  } finally {
    await db.close()
  }
}
