import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import type { StoreId } from '../../ids.ts'
import { knownZone, localTime } from '../../zone.ts'
import { addFigures, type Figures, noFigures, sharesOf } from './rollup.ts'
import * as rows from './rows.ts'

/**
 * Sums up what stores took and how their checkouts ended, from their event logs.
 *
 * A store's cursor marks the last event that was counted. One process at a time locks it, adds the changes of the next
 * events to their quarter hours, and moves the cursor in the same transaction. So a process that dies in between has
 * counted nothing, and a repeated run finds the cursor moved. An event adds the state that it shows and subtracts the
 * state before it, which the log also has. So a checkout that a reorganisation takes from COMPLETED leaves the quarter
 * hour in which it was counted, and a checkout that is paid after it expired counts as paid only.
 *
 * Days are the same sums in the store's time zone. If that zone changes, they are summed again from the quarter hours.
 */
const storesPerRun = 50
/** With the stores of one run, at most 50,000 events are read at once. */
const eventsPerStore = 1_000
/** How many quarter hours of a store are read at once when its days are summed again. */
const quartersPerPage = 5_000

/**
 * Counts waiting events. `pass` holds the position of the last run, so that no store waits for all stores with lower
 * ids. Returns whether there were any events.
 */
export async function countRollups(ctx: Context, pass = { after: '' }): Promise<boolean> {
  const behind = await rows.storesToCount(ctx.db, pass.after, storesPerRun)
  const waiting =
    behind.length > 0 || pass.after === '' ? behind : await rows.storesToCount(ctx.db, '', storesPerRun)
  pass.after = (waiting.length === storesPerRun && waiting.at(-1)) || ''
  if (waiting.length === 0) return false
  try {
    return await countStores(ctx, waiting)
  } catch (error) {
    // One store's figures must not depend on another's, so each is counted alone and only those that fail stay behind.
    if (waiting.length === 1) throw error
    ctx.log.warn(
      { err: error, stores: waiting.length },
      'could not count these stores together; trying one by one',
    )
  }
  const failures: unknown[] = []
  for (const storeId of waiting)
    await countStores(ctx, [storeId]).catch((error) => {
      ctx.log.error(
        { err: error, storeId },
        "could not count a store's takings; its console shows old figures",
      )
      failures.push(error)
    })
  if (failures.length > 0) throw failures[0]
  return true
}

/** Returns whether anything was counted. Other processes may have locked all of these stores. */
export async function countStores(
  ctx: Context,
  storeIds: readonly StoreId[],
  eventsMax = eventsPerStore,
): Promise<boolean> {
  return await ctx.db.transaction(async (tx) => {
    const stretches = await rows.lockStretches(tx, storeIds, eventsMax)
    if (stretches.length === 0) return false
    const zones = new Map(stretches.map(({ storeId, zone }) => [storeId, knownZone(zone)]))
    const quarters = await readDeltas(tx, stretches)
    await apply(tx, 'quarter', quarters)
    const isMoved = ({ storeId, summedIn }: rows.Stretch) => summedIn !== zones.get(storeId)
    const moved = new Set(stretches.filter(isMoved).map(({ storeId }) => storeId))
    for (const storeId of moved) await sumDays(tx, storeId, zones.get(storeId) ?? 'UTC')
    const days = quarters
      .filter(({ storeId }) => !moved.has(storeId))
      .map((row) => ({ ...row, at: localTime(new Date(row.at), zones.get(row.storeId) ?? 'UTC').day }))
    await apply(tx, 'day', sumUp(days))
    await rows.moveCursors(
      tx,
      stretches.map(({ storeId, until }) => ({ storeId, until, zone: zones.get(storeId) ?? 'UTC' })),
    )
    return true
  })
}

/** The changes that these events make, by quarter hour. */
export async function readDeltas(
  db: Pick<Transaction, 'query'>,
  stretches: readonly rows.Uncounted[],
): Promise<rows.Row[]> {
  const made = await rows.readMade(db, stretches)
  const changes = await rows.readChanges(db, stretches)
  const deltas: rows.Row[] = made.map((row) => ({
    storeId: row.storeId,
    at: row.startsAt.toISOString(),
    figures: { ...noFigures, made: row.made },
  }))
  for (const { storeId, before, now } of changes) {
    const add = (shares: ReturnType<typeof sharesOf>, sign: 1 | -1) =>
      deltas.push(
        ...shares.map(({ startsAt, figures }) => ({
          storeId,
          at: startsAt.toISOString(),
          figures: addFigures(noFigures, figures, sign),
        })),
      )
    add(sharesOf(now), 1)
    if (before) add(sharesOf(before), -1)
  }
  return sumUp(deltas)
}

async function apply(tx: Transaction, span: 'quarter' | 'day', deltas: readonly rows.Row[]): Promise<void> {
  if (deltas.length === 0) return
  await rows.writeRows(tx, span, sumUp([...(await rows.readRows(tx, span, deltas)), ...deltas]))
}

async function sumDays(tx: Transaction, storeId: StoreId, zone: string): Promise<void> {
  await rows.deleteDays(tx, storeId)
  for (let after = '1970-01-01T00:00:00.000Z'; ; ) {
    const page = await rows.listQuarters(tx, storeId, after, quartersPerPage)
    const days = page.map((row) => ({ ...row, at: localTime(new Date(row.at), zone).day }))
    await apply(tx, 'day', sumUp(days))
    const last = page.at(-1)
    if (!last || page.length < quartersPerPage) return
    after = last.at
  }
}

/** One row for each store and time. */
function sumUp(all: readonly rows.Row[]): rows.Row[] {
  const sums = new Map<string, { storeId: StoreId; at: string; figures: Figures }>()
  for (const { storeId, at, figures } of all) {
    const key = `${storeId} ${at}`
    const sum = sums.get(key)
    if (sum) sum.figures = addFigures(sum.figures, figures)
    else sums.set(key, { storeId, at, figures })
  }
  return [...sums.values()]
}

/** With this many events in one transaction, even a long log takes few transactions, and each stays under a second. */
const eventsPerStep = 10_000

/**
 * Counts a store's figures again, from the first event of its log. `work` may run meanwhile, because only the process
 * that holds the cursor counts. Until everything is counted, the console says that figures are incomplete. Returns the
 * number of events.
 */
export async function rebuildRollups(ctx: Context, storeId: StoreId): Promise<bigint> {
  const events = await ctx.db.transaction(async (tx) => {
    await rows.resetStore(tx, storeId)
    return BigInt((await rows.readUncounted(tx, storeId)).until)
  })
  // An event written meanwhile is counted too. So this ends when no event is left, or when `work` holds the cursor.
  for (;;) {
    const { after, until } = await rows.readUncounted(ctx.db, storeId)
    if (after === until || !(await countStores(ctx, [storeId], eventsPerStep))) return events
  }
}
