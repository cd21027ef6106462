/** What a statement costs does not grow with the books. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { Database } from '../../src/database/db.ts'
import { monthRange } from '../../src/movements/month.ts'
import { readWallets } from '../../src/movements/statement.ts'
import { openTestApp } from '../support/app.ts'
import { openAs } from '../support/database.ts'
import { openStore } from '../support/store.ts'
import { bookAt, lineOf, onSolana } from './support/lines.ts'

const farthing = await openTestApp()
const { db } = farthing.ctx
const sql = await readFile(new URL('../../migrations/0068_book_turns.sql', import.meta.url), 'utf8')

const other = '0x15d34aaf54267db7d7c367839aaf71a00a2c6a65'
/** Quarter hours in which a wallet was paid, a year and a half of them. */
const quarters = 50_000

/** How many blocks of 8 KB the statements that `read` runs look at. */
async function countBlocks(read: (db: Database) => Promise<unknown>): Promise<number> {
  let blocks = 0
  const counting: Database = {
    ...db,
    async query(text, values) {
      const plan = await db.query<{ 'QUERY PLAN': string }>(
        `explain (analyze, buffers, costs off, timing off) ${text}`,
        values,
      )
      const [top = ''] = plan.map((row) => row['QUERY PLAN']).filter((line) => /Buffers/.test(line))
      for (const [, each] of top.matchAll(/(?:hit|read)=(\d+)/g)) blocks += Number(each)
      return await db.query(text, values)
    },
  }
  await read(counting)
  return blocks
}

test('a statement reads two places per wallet and token, however long its books are', async () => {
  const shop = await openStore(farthing)
  const storeId = shop.store.id
  const range = monthRange('2026-09', 'UTC')
  for (const wallet of [undefined, other])
    await bookAt(farthing, '2025-01-01T00:00:00Z', [lineOf(storeId, wallet === undefined ? {} : { wallet })])
  const read = (from: Database) => readWallets(from, storeId, range)
  // As many lines before the month, each in another quarter hour, booked as `work` books them.
  await db.transaction(async (tx) => {
    await tx.query(
      `insert into movements (store_id, number, id, type, happened_at, booked_at, network, asset, amount, wallet,
         payment_id, value_currency, place)
       select m.store_id, m.number + 1 + i, 'mov_' || i, 'payment', m.happened_at, m.booked_at + i * interval '15 minutes',
         m.network, m.asset, 1, case when i % 2 = 0 then m.wallet else $3 end, 'pay_' || i, 'USD', 0
       from movements m cross join generate_series(1, $2) i where m.store_id = $1 and m.number = 1`,
      [storeId, quarters, other],
    )
    await tx.query('delete from movement_balances')
    // As the migration did.
    await tx.script(sql.slice(sql.indexOf('insert into movement_balances')))
  })
  await db.query('analyze movements')
  await db.query('analyze movement_balances')
  for (const [time, change] of [
    ['2026-09-02T10:00:00Z', {}],
    ['2026-09-02T10:01:00Z', { wallet: other, type: 'refund', amount: -5n }],
    ['2026-09-30T23:59:59Z', onSolana],
    ['2026-10-01T00:00:00Z', { wallet: other }],
    ['2026-10-01T00:00:01Z', { wallet: '0x0000000000000000000000000000000000000001' }],
  ] as const)
    await bookAt(farthing, time, [lineOf(storeId, change)])
  const half = BigInt(quarters / 2)
  const sums = await read(openAs('serve', farthing.databaseUrl))
  assert.deepEqual(
    sums.map(({ wallet, opening, received, refunded, closing }) => [
      wallet,
      opening,
      received,
      refunded,
      closing,
    ]),
    [
      [other, 12_500_000n + half, 0n, -5n, 12_499_995n + half],
      [onSolana.wallet, 0n, 12_500_000n, 0n, 12_500_000n],
      [lineOf(storeId).wallet, 12_500_000n + half, 12_500_000n, 0n, 25_000_000n + half],
    ].toSorted((a, b) => ((a[0] ?? '') < (b[0] ?? '') ? -1 : 1)),
  )
  const blocks = await countBlocks(read)
  assert(blocks > 0 && blocks < 150, `${blocks} blocks`)
})
