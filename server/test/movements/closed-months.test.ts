/** A month that is over is the same file for ever, whatever happens afterwards, and days add up whatever clocks do. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoreId } from '../../src/ids.ts'
import { openBook, openExport } from '../../src/movements/export.ts'
import { monthRange } from '../../src/movements/month.ts'
import { readDaySums, readWallets, totalsOf } from '../../src/movements/statement.ts'
import { addDays, startOf } from '../../src/zone.ts'
import { openTestApp } from '../support/app.ts'
import { openStore } from '../support/store.ts'
import { bookAt, lineOf, onSolana } from './support/lines.ts'

const farthing = await openTestApp()
const { ctx } = farthing

async function fileOf(storeId: StoreId, month: string, zone: string): Promise<string> {
  const { text } = await openExport(ctx, storeId, monthRange(month, zone), openBook('csv', zone))
  let file = ''
  for await (const part of text) file += part
  return file
}

test('October is the same, byte for byte, on 1 November and after refunds, reversals and acceptances of November', async () => {
  const shop = await openStore(farthing)
  const storeId = shop.store.id
  const zone = 'Europe/Berlin'
  await bookAt(farthing, '2026-09-30T21:59:59.500Z', [lineOf(storeId, { orderId: 'September' })])
  await bookAt(farthing, '2026-09-30T22:00:00Z', [lineOf(storeId, { orderId: 'first of October' })])
  for (let i = 0; i < 30; i++)
    await bookAt(farthing, `2026-10-15T10:${String(i).padStart(2, '0')}:00Z`, [
      lineOf(storeId, { orderId: `order ${i}`, ...(i % 2 === 0 ? onSolana : {}) }),
    ])
  await bookAt(farthing, '2026-10-31T22:59:59Z', [lineOf(storeId, { orderId: 'last of October' })])
  const first = await fileOf(storeId, '2026-10', zone)
  const november = await fileOf(storeId, '2026-11', zone)
  const back = { amount: -12_500_000n, value: '-12.50' }
  await bookAt(farthing, '2026-11-05T10:00:00Z', [
    lineOf(storeId, { type: 'refund', ...back }),
    lineOf(storeId, { type: 'payment_reversed', ...back, reverses: 3 }),
    lineOf(storeId, {
      type: 'acceptance',
      amount: 0n,
      value: '0.00',
      wallet: null,
      actor: { type: 'key', id: 'k' },
    }),
    lineOf(storeId, { type: 'payment' }),
  ])
  assert.equal(await fileOf(storeId, '2026-10', zone), first)
  assert.equal(first.split('\r\n').length, 1 + 32 + 1)
  assert(
    first.includes('last of October') && first.includes('first of October') && !first.includes('September'),
  )
  assert.notEqual(await fileOf(storeId, '2026-11', zone), november)
})

for (const [zone, day] of [
  ['Europe/Berlin', '2026-10-25'],
  ['America/New_York', '2026-11-01'],
  ['Australia/Lord_Howe', '2026-10-04'],
] as const)
  test(`days around a change of the clock in ${zone} add up to their range, and each hour is in one day`, async () => {
    const shop = await openStore(farthing)
    const storeId = shop.store.id
    const [before, after] = [addDays(day, -1), addDays(day, 2)]
    const from = startOf(before, zone)
    const until = startOf(after, zone)
    const hours: Date[] = []
    for (let at = from.getTime() - 3_600_000; at < until.getTime() + 3_600_000; at += 1_800_000)
      hours.push(new Date(at + 60_000))
    for (const [i, time] of hours.entries())
      await bookAt(farthing, time, [lineOf(storeId, { amount: BigInt(i + 1), value: `${i + 1}.00` })])
    const inside = hours.filter((time) => time >= from && time < until)
    const { days } = await readDaySums(ctx.db, storeId, { from, before: until }, zone)
    assert.deepEqual(
      days.map((each) => each.day),
      [before, day, addDays(day, 1)],
    )
    assert.equal(
      days.reduce((sum, { payments }) => sum + payments, 0),
      inside.length,
    )
    let sum = 0n
    for (const { day: each, gross } of days) {
      const range = { from: startOf(each, zone), before: startOf(addDays(each, 1), zone) }
      const [alone] = (await readDaySums(ctx.db, storeId, range, zone)).days
      assert.equal(alone?.gross, gross, each)
      sum += gross
    }
    const [total] = totalsOf(days)
    assert.equal(total?.gross, sum)
    const expected = hours.reduce(
      (all, time, i) => (time >= from && time < until ? all + BigInt(i + 1) : all),
      0n,
    )
    assert.equal(sum, expected * 1_000_000n)
  })

test('a wallet’s closing balance is its opening balance of the next month, and both are sums of lines', async () => {
  const shop = await openStore(farthing)
  const storeId = shop.store.id
  for (const [time, amount, type] of [
    ['2026-08-03T00:00:00Z', 10n, 'payment'],
    ['2026-09-03T00:00:00Z', 7n, 'payment'],
    ['2026-09-04T00:00:00Z', -3n, 'refund'],
    ['2026-10-04T00:00:00Z', -7n, 'payment_reversed'],
    ['2026-10-05T00:00:00Z', 5n, 'payment'],
  ] as const)
    await bookAt(farthing, time, [
      lineOf(storeId, { type, amount, ...(type === 'payment_reversed' && { reverses: 2 }) }),
    ])
  const of = async (month: string) => {
    const [sums] = await readWallets(ctx.db, storeId, monthRange(month, 'UTC'))
    const { opening, received, reversed, refunded, closing } = sums ?? assert.fail()
    return [opening, received, reversed, refunded, closing]
  }
  assert.deepEqual(await of('2026-09'), [10n, 7n, 0n, -3n, 14n])
  assert.deepEqual(await of('2026-10'), [14n, 5n, -7n, 0n, 12n])
})
