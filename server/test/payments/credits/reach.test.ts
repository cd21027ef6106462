/** Blocks become safe and final in steps. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { advanceCredits, findReach } from '../../../src/payments/credits/rows.ts'
import { freshDatabase } from '../../support/database.ts'

const network = 'eip155:31337'
const { db } = await freshDatabase()
/** How many payments each block has, from block 10 on. */
const blocks = [2, 0, 1, 7, 1, 1, 1, 0]
const first = 10
const last = first + blocks.length - 1
const perStep = 3

await db.query(
  `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash, position,
     asset, payer, nonce, pay_to, amount, disposition, first_seen_block_time, included_at, witnessed_at)
   select $1, 'hash-' || b, i, 'pay-' || b || '-' || i, b, clock(), 'transaction-' || b, i, 'asset', 'payer', b || '-' || i,
     'store', 1, 'unmatched', clock(), clock(), clock()
   from unnest($2::integer[]) with ordinality as n (count, place) cross join lateral (select place + $3 - 1 as b) b
   cross join lateral generate_series(1, n.count) as i`,
  [network, blocks, first],
)

test('a step is whole blocks with few payments, or one block with many, and reaches the end', async () => {
  const steps: number[] = []
  for (let above = first - 1; above < last; above = steps.at(-1) ?? last)
    steps.push(await findReach(db, network, { above, upTo: last }, perStep))
  assert.deepEqual(steps, [12, 13, 17])
  assert.equal(await findReach(db, network, { above: last, upTo: last + 5 }, perStep), last + 5)
})

test('a step records the finality of the payments of its blocks, and of no others', async () => {
  const state = async () =>
    await db.query<{ number: number; safe: boolean; final: boolean; payments: number }>(
      `select block_number::integer as number, safe_at is not null as safe, finalized_at is not null as final,
         count(*)::integer as payments from credits group by 1, 2, 3 order by 1`,
    )
  const expected = (safe: number, finalized: number) =>
    blocks.flatMap((payments, i) => {
      const number = first + i
      return payments === 0 ? [] : { number, safe: number <= safe, final: number <= finalized, payments }
    })
  const advance = (safe: number, finalized: number, above: number, upTo: number) =>
    db.transaction((tx) => advanceCredits(tx, network, { safe, finalized }, { above, upTo }))
  await advance(12, 0, first - 1, 12)
  assert.deepEqual(await state(), expected(12, 0))
  await advance(13, 0, 12, 13)
  assert.deepEqual(await state(), expected(13, 0))
  await advance(13, 12, -1, 12)
  assert.deepEqual(await state(), expected(13, 12))
  await advance(last, 13, -1, last)
  assert.deepEqual(await state(), expected(last, 13))
})
