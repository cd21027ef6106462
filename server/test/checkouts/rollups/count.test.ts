/** What a store took, counted event by event in any steps, is what its checkouts and payments say. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import type { CheckoutStatus } from '@farthing/sdk'
import fc from 'fast-check'
import { arrows, type Checkout, toWire } from '../../../src/checkouts/checkout.ts'
import { insertCheckouts } from '../../../src/checkouts/create.ts'
import { countRollups, countStores, rebuildRollups } from '../../../src/checkouts/rollups/count.ts'
import type { Figures } from '../../../src/checkouts/rollups/rollup.ts'
import { listQuarters, readDays } from '../../../src/checkouts/rollups/rows.ts'
import { moveCheckouts } from '../../../src/checkouts/rows.ts'
import type { Context } from '../../../src/context.ts'
import { assignWaitingSequences } from '../../../src/events/assign-sequence.ts'
import { newId, type StoreId } from '../../../src/ids.ts'
import { makeStore, openTestApp } from '../../support/app.ts'
import { openAs } from '../../support/database.ts'
import { operator } from '../../support/operator.ts'

const farthing = await openTestApp()
const { ctx } = farthing
/** As `work` counts. */
let worker: Context
const start = new Date('2026-10-24T20:00:00Z')
const usdc = { network: 'eip155:8453', asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' }
const minutes = (count: number) => new Date(start.getTime() + count * 60_000)

before(() => {
  worker = { ...ctx, db: openAs('work', farthing.databaseUrl) }
})

type Plan = {
  readonly createdMinute: number
  readonly price: { readonly amount: string; readonly currency: string; readonly units: bigint }
  /** Which of the possible changes of status comes next, after how many minutes, and how much of the price is paid. */
  readonly steps: readonly { readonly choice: number; readonly after: number; readonly percent: number }[]
}

const plan: fc.Arbitrary<Plan> = fc.record({
  createdMinute: fc.nat(3_000),
  price: fc.constantFrom(
    { amount: '12.50', currency: 'USD', units: 12_500_000n },
    { amount: '8', currency: 'EUR', units: 9_302_326n },
  ),
  steps: fc.array(
    fc.record({
      choice: fc.nat(3),
      after: fc.integer({ min: 1, max: 400 }),
      percent: fc.constantFrom(100, 50, 200),
    }),
    { maxLength: 6 },
  ),
})

type Ended = { checkout: Checkout; at: Date; paid: bigint }

/** Writes one checkout and all of its changes with the functions that the product writes them with. */
async function live(storeId: StoreId, { createdMinute, price, steps }: Plan): Promise<Ended> {
  const createdAt = minutes(createdMinute)
  let checkout: Checkout = {
    id: newId('ch', ctx.config.cell, createdAt),
    storeId,
    linkId: null,
    orderId: 'order',
    priceAmount: price.amount,
    priceCurrency: price.currency,
    description: null,
    metadata: null,
    rate: null,
    successRedirectUrl: null,
    cancelUrl: null,
    options: [{ ...usdc, amount: price.units.toString(), payTo: usdc.asset }],
    finality: 'included',
    status: 'OPEN',
    version: 1,
    createdAt,
    expiresAt: minutes(createdMinute + 60),
  }
  const [{ revision } = { revision: 0 }] = await ctx.db.query<{ revision: number }>(
    'select revision from stores where id = $1',
    [storeId],
  )
  const answer = JSON.stringify(toWire(ctx, checkout))
  const eventId = newId('evt', ctx.config.cell, createdAt)
  const row = { checkout, rate: null, revision, eventId, actor: operator, idempotency: null, answer }
  await insertCheckouts(ctx.db, [row], 1_000)
  let at = createdAt
  let paid = 0n
  for (const { choice, after, percent } of steps) {
    const possible = Object.keys(arrows[checkout.status]) as CheckoutStatus[]
    const status = possible[choice % possible.length]
    assert(status)
    at = new Date(at.getTime() + after * 60_000)
    paid = status === 'COMPLETED' ? (price.units * BigInt(percent)) / 100n : 0n
    const payment = {
      ...usdc,
      amount: paid.toString(),
      transaction: '0x',
      payer: '0x',
      finality: 'included',
    } as const
    const payments = new Map([[checkout.id, paid > 0n ? payment : null]])
    const moved = await ctx.db.transaction((tx) =>
      moveCheckouts(ctx, tx, [checkout], { status, payments }, at),
    )
    assert(moved[0])
    checkout = moved[0]
  }
  return { checkout, at, paid }
}

/** The same figures straight from how the checkouts ended, in the order of the quarter hours. */
function expected(all: readonly Ended[], toSpan: (time: Date) => string) {
  const sums = new Map<string, Record<string, number | bigint>>()
  const add = (time: Date, name: string, amount: number | bigint) => {
    const span = sums.get(toSpan(time)) ?? {}
    sums.set(toSpan(time), span)
    span[name] =
      typeof amount === 'bigint' ? BigInt(span[name] ?? 0n) + amount : ((span[name] ?? 0) as number) + amount
  }
  for (const { checkout, at, paid } of all) {
    const { status, createdAt, priceCurrency: currency } = checkout
    add(createdAt, 'made', 1)
    if (status === 'EXPIRED') add(createdAt, 'expired', 1)
    if (status === 'CANCELED') add(createdAt, 'canceled', 1)
    if (status !== 'COMPLETED') continue
    add(createdAt, 'paid', 1)
    add(at, `payments ${currency}`, 1)
    add(at, `received ${currency}`, paid)
    add(at, `priced ${currency}`, currency === 'USD' ? paid : (paid * 8_000_000n) / 9_302_326n)
    add(at, 'timed', 1)
  }
  return new Map([...sums].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function flatten(rows: readonly { at: string; figures: Figures }[]) {
  return new Map(
    rows.flatMap(({ at, figures }) => {
      const { taken, times, ...counts } = figures
      const flat: [string, number | bigint][] = [
        ...Object.entries(counts),
        ...Object.entries(taken).flatMap(([key, sum]): [string, number | bigint][] => {
          const currency = key.split(' ')[2]
          return Object.entries(sum).map(([name, value]) => [`${name} ${currency}`, value])
        }),
        ['timed', Object.values(times).reduce((sum, count) => sum + count, 0)],
      ]
      const some = flat.filter(([, value]) => value !== 0 && value !== 0n)
      return some.length > 0 ? [[at, Object.fromEntries(some)]] : []
    }),
  )
}

const quartersOf = (storeId: StoreId) =>
  ctx.db.transaction((tx) => listQuarters(tx, storeId, '1970-01-01T00:00:00.000Z', 10_000))
const daysOf = (storeId: StoreId) => readDays(ctx.db, storeId, '2026-01-01', '2027-01-01')
const toQuarter = (time: Date) => new Date(Math.floor(time.getTime() / 900_000) * 900_000).toISOString()

test('counted in any steps, with processes that die in between, or again from the start: what the checkouts say', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(plan, { minLength: 1, maxLength: 6 }),
      fc.array(fc.record({ events: fc.integer({ min: 1, max: 9 }), dies: fc.boolean() }), {
        minLength: 1,
        maxLength: 6,
      }),
      async (plans, runs) => {
        const { store } = await makeStore(ctx, { mode: 'test' })
        const ended: Ended[] = []
        for (const one of plans) ended.push(await live(store.id, one))
        await assignWaitingSequences(ctx)
        for (const { events, dies } of runs) await countOrDie(store.id, events, dies)
        while (await countRollups(worker));
        const wanted = expected(ended, toQuarter)
        const counted = await quartersOf(store.id)
        assert.deepEqual(flatten(counted), wanted)
        assert.deepEqual(
          flatten(await daysOf(store.id)),
          expected(ended, (time) => time.toISOString().slice(0, 10)),
        )
        await rebuildRollups(ctx, store.id)
        assert.deepEqual(flatten(await quartersOf(store.id)), wanted)
      },
    ),
    { numRuns: 15 },
  )
})

/** A transaction that never commits, as of a process that is killed at the last moment. */
async function countOrDie(storeId: StoreId, events: number, dies: boolean): Promise<void> {
  const killed = new Error('killed')
  const transaction: Context['db']['transaction'] = (work) =>
    worker.db.transaction(async (tx) => {
      const result = await work(tx)
      if (dies) throw killed
      return result
    })
  const dying = { ...worker, db: { ...worker.db, transaction } }
  await countStores(dying, [storeId], events).catch((error) => assert.equal(error, killed))
}

test('two processes that count at once count nothing twice, and other stores keep their own figures', async () => {
  const shops = await Promise.all([1, 2].map(() => makeStore(ctx, { mode: 'test' })))
  const paid = { choice: 1, after: 5, percent: 100 }
  const price = { amount: '12.50', currency: 'USD', units: 12_500_000n }
  for (const { store } of shops)
    for (const createdMinute of [0, 7, 20]) await live(store.id, { createdMinute, price, steps: [paid] })
  await assignWaitingSequences(ctx)
  const ids = shops.map(({ store }) => store.id)
  await Promise.all([1, 2, 3, 4].map(() => countStores(worker, ids, 3)))
  while (await countRollups(worker));
  for (const id of ids) {
    const made = (await daysOf(id)).map(({ figures }) => [figures.made, figures.paid])
    assert.deepEqual(made, [[3, 3]])
  }
})
