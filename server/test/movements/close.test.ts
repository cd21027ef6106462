/** A range that was shown as complete gains no line, whatever happens to clocks and processes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { numberEvents } from '../../src/checkouts/number-events.ts'
import { openDatabase } from '../../src/database/db.ts'
import type { Movement } from '../../src/movements/movement.ts'
import { closeRange, listMovements, listQuarterSums } from '../../src/movements/rows.ts'
import { openTestApp } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { openAs, urlAs } from '../support/database.ts'
import { openStore } from '../support/store.ts'
import { bookAll, booksOf, payFinal } from './support/books.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const work = { ...ctx, db: openAs('work', farthing.databaseUrl) }
const serve = openAs('serve', farthing.databaseUrl)
/** Another machine that books, whose clock is behind by a day. */
const behind = openDatabase({
  url: urlAs('work', farthing.databaseUrl),
  connections: 4,
  name: 'behind',
  clockOffset: '-1day',
})
atEnd(() => behind.close())

async function databaseTime(): Promise<Date> {
  const [row] = await ctx.db.query<{ now: Date }>('select wall_clock() as now')
  return row?.now ?? assert.fail()
}

const epoch = new Date(0)

test('what is being booked when a month is asked for is in it, however long that takes', async () => {
  const shop = await openStore(farthing)
  const storeId = shop.store.id
  await payFinal(farthing, shop)
  let goOn = () => {}
  const isHeld = new Promise<void>((resolve) => (goOn = resolve))
  let tell = () => {}
  const isBooked = new Promise<void>((resolve) => (tell = resolve))
  // Numbers and books, and does not commit.
  const held: typeof work = {
    ...work,
    db: {
      ...work.db,
      transaction: (run) =>
        work.db.transaction(async (tx) => {
          const result = await run(tx)
          tell()
          await isHeld
          return result
        }),
    },
  }
  const booking = numberEvents(held)
  await isBooked
  const range = { from: epoch, before: await databaseTime() }
  const closing = closeRange(serve, storeId, range)
  const first = await Promise.race([closing.then(() => 'closed'), waitsForLock().then(() => 'waits')])
  assert.equal(first, 'waits')
  goOn()
  await booking
  assert.equal(await closing, true)
  const lines = await listMovements(serve, storeId, range, 0, 10)
  assert.equal(lines.length, 1)
  await payFinal(farthing, shop)
  await bookAll(work)
  assert.deepEqual(await listMovements(serve, storeId, range, 0, 10), lines)
})

/** Until a statement waits for a lock of another one. */
async function waitsForLock(): Promise<void> {
  for (;;) {
    const rows = await ctx.db.query(
      "select 1 as one from pg_stat_activity where wait_event_type = 'Lock' and query like '%close_movements%'",
    )
    if (rows.length > 0) return
  }
}

test('a booking that began before the month ended and got its turn after it belongs to the next month', async () => {
  const shop = await openStore(farthing)
  await payFinal(farthing, shop)
  const result = await work.db.transaction(async (tx) => {
    await tx.query('select 1')
    const range = { from: epoch, before: await databaseTime() }
    assert.equal(await closeRange(serve, shop.store.id, range), true)
    const inside: typeof work = { ...work, db: { ...work.db, transaction: (run) => run(tx) } }
    await numberEvents(inside)
    return range
  })
  assert.deepEqual(await listMovements(serve, shop.store.id, result, 0, 10), [])
  assert.equal((await booksOf(farthing, shop.id)).length, 1)
})

test('a clock that goes back, or another machine’s, books nothing in a month that was shown, and keeps the order', async () => {
  const shop = await openStore(farthing)
  await payFinal(farthing, shop)
  await bookAll(work)
  const range = { from: epoch, before: await databaseTime() }
  assert.equal(await closeRange(serve, shop.store.id, range), true)
  const before = await listMovements(serve, shop.store.id, range, 0, 10)
  await payFinal(farthing, shop)
  await bookAll({ ...work, db: behind })
  assert.deepEqual(await listMovements(serve, shop.store.id, range, 0, 10), before)
  const lines: Movement[] = await booksOf(farthing, shop.id)
  assert.equal(lines.length, 2)
  assert((lines[1]?.bookedAt ?? epoch) >= range.before)
})

test('a month that is not over is not closed, and closing an old one twice changes nothing', async () => {
  const shop = await openStore(farthing)
  const now = await databaseTime()
  const ahead = { from: epoch, before: new Date(now.getTime() + 3_600_000) }
  assert.equal(await closeRange(serve, shop.store.id, ahead), false)
  assert.equal(await closeRange(serve, shop.store.id, { from: epoch, before: now }), true)
  const old = { from: epoch, before: new Date(now.getTime() - 3_600_000) }
  assert.equal(await closeRange(serve, shop.store.id, old), true)
  const [row] = await ctx.db.query<{ until: Date }>(
    'select until from movement_closings where store_id = $1',
    [shop.id],
  )
  assert.deepEqual(row?.until, now)
})

test('the sums of quarter hours are those of the lines', async () => {
  const shop = await openStore(farthing)
  for (const priceAmount of ['1.25', '20.00', '0.01']) await payFinal(farthing, shop, { priceAmount })
  await bookAll(work)
  const lines = await booksOf(farthing, shop.id)
  const sums = await listQuarterSums(ctx.db, shop.store.id, { from: epoch, before: new Date('2200-01-01') })
  const total = (amounts: readonly bigint[]) => amounts.reduce((sum, amount) => sum + amount, 0n)
  assert.equal(total(sums.map(({ amount }) => amount)), total(lines.map(({ amount }) => amount)))
  assert.equal(total(sums.map(({ value }) => value)), 21_260_000n)
})
