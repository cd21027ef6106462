/** A block may be read several times, each time in another part: only what enough providers tell stays. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { orphanCredits } from '../../../src/payments/credits/rows.ts'
import { withdrawUntold } from '../../../src/payments/credits/single-provider.ts'
import { type NewCredit, upsertCredits } from '../../../src/payments/credits/write.ts'
import { freshDatabase } from '../../support/database.ts'

const { db } = await freshDatabase()
const network = 'eip155:1'
let runs = 0

type Transfer = { readonly transaction: number; readonly isSigned: boolean; readonly value: bigint }
type Step =
  | { readonly kind: 'read'; readonly has: readonly boolean[]; readonly isWitnessed: boolean }
  | { readonly kind: 'orphan' }

/**
 * What one reading tells of a block: positions are counted as readTransfers does, over what this reading has. The log
 * indexes of the second block differ, as they do when a transaction is included again.
 */
function readingOf(
  block: string,
  all: readonly Transfer[],
  has: readonly boolean[],
  firstIndex: number,
): NewCredit[] {
  const positions = new Map<string, number>()
  return all.flatMap(({ transaction, isSigned, value }, i) => {
    if (has[i] === false) return []
    const group = `${transaction} ${value}`
    const position = positions.get(group) ?? 0
    positions.set(group, position + 1)
    const transactionHash = `0x${runs}-${transaction}` as const
    const place = { transactionHash, logIndex: firstIndex + 2 * i, position }
    const money = { asset: '0xa', payer: '0xb', to: '0xc', value }
    const rest = { checkoutId: null, storeId: null, isExpected: false, sender: null }
    const paymentId = `pay_${block}_${i}_${Math.random()}`
    return isSigned
      ? { seen: { ...money, ...place, nonce: `0x${runs}-${i}` }, paymentId, ...rest }
      : { seen: { ...money, ...place, nonce: null }, paymentId, ...rest }
  })
}

async function read(block: string, credits: readonly NewCredit[], isWitnessed: boolean): Promise<void> {
  await db.transaction(async (tx) => {
    if (isWitnessed)
      await withdrawUntold(
        tx,
        network,
        block,
        credits.map(({ seen }) => seen),
      )
    if (credits.length > 0)
      await upsertCredits(tx, network, { hash: block, number: 7, time: new Date() }, credits, isWitnessed)
  })
}

type Live = { block_hash: string; log_index: number; payment_id: string; position: number }

async function readLive(): Promise<Live[]> {
  return await db.query<Live>(
    `select block_hash, log_index, payment_id, position from credits
     where transaction_hash like $1 and orphaned_at is null order by log_index`,
    [`0x${runs}-%`],
  )
}

const transferArb = fc.record({
  transaction: fc.nat(1),
  isSigned: fc.boolean(),
  value: fc.constantFrom(5n, 6n),
})
const stepArb: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('read' as const),
      has: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
      isWitnessed: fc.constant(false),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'orphan' as const }) },
)

test('whatever parts of a block were read before, in whatever order, the complete reading is what stays', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(transferArb, { minLength: 1, maxLength: 4 }),
      fc.array(stepArb, { maxLength: 5 }),
      fc.boolean(),
      async (transfers, steps, isReorganised) => {
        runs += 1
        const first = `first${runs}`
        for (const step of steps)
          if (step.kind === 'orphan') await db.transaction((tx) => orphanCredits(tx, network, [first]))
          else await read(first, readingOf(first, transfers, step.has, 0), step.isWitnessed)
        const last = isReorganised ? `second${runs}` : first
        if (isReorganised) await db.transaction((tx) => orphanCredits(tx, network, [first]))
        const firstIndex = isReorganised ? 11 : 0
        const everything = readingOf(last, transfers, [], firstIndex)
        await read(last, everything, true)
        // Once more, as blocks are: nothing may depend on how often.
        await read(last, everything, true)
        const live = await readLive()
        assert.deepEqual(
          live.map(({ block_hash, log_index, position }) => ({ block_hash, log_index, position })),
          everything.map(({ seen }) => ({
            block_hash: last,
            log_index: seen.logIndex,
            position: seen.position,
          })),
        )
        assert.equal(new Set(live.map(({ payment_id }) => payment_id)).size, live.length, 'one payment each')
      },
    ),
    {
      numRuns: 300,
      examples: [
        // The second of two equal transfers is told twice, each time as the first: one payment, then the other's.
        [
          [
            { transaction: 1, isSigned: false, value: 5n },
            { transaction: 1, isSigned: false, value: 5n },
          ],
          [
            { kind: 'read', has: [false, true, false, false], isWitnessed: false },
            { kind: 'orphan' },
            { kind: 'read', has: [false, true, false, false], isWitnessed: false },
          ],
          false,
        ],
      ],
    },
  )
})

for (const [name, parts] of [
  ['the second of two', [[1]]],
  ['the second, then the first', [[1], [0]]],
  ['the last two of three, then the first', [[1, 2], [0]]],
  ['the first of three, then the others', [[0], [1, 2]]],
  ['one of three after the other, last first', [[2], [1], [0]]],
  [
    'each pair of three',
    [
      [1, 2],
      [0, 2],
      [0, 1],
    ],
  ],
] as const)
  for (const isSigned of [true, false])
    test(`equal ${isSigned ? 'signed' : 'plain'} payments of which one provider tells ${name} all count`, async () => {
      runs += 1
      const block = `parts${runs}`
      const count = Math.max(2, ...parts.flat().map((part) => part + 1))
      const transfers = Array.from({ length: count }, () => ({ transaction: 0, isSigned, value: 5n }))
      for (const part of parts)
        await read(
          block,
          readingOf(
            block,
            transfers,
            transfers.map((_, i) => (part as readonly number[]).includes(i)),
            0,
          ),
          false,
        )
      // What one provider has left out stays until enough have told that it is not there.
      assert.equal((await readLive()).length, new Set(parts.flat()).size)
      await read(block, readingOf(block, transfers, [], 0), true)
      assert.deepEqual(
        (await readLive()).map(({ position }) => position),
        transfers.map((_, i) => i),
      )
    })

test('what a provider alone told of a block does not come back with that block once others tell it differently', async () => {
  runs += 1
  const block = `returning${runs}`
  const [made = assert.fail()] = readingOf(block, [{ transaction: 0, isSigned: true, value: 6n }], [], 0)
  await read(block, [made], false)
  await db.transaction((tx) => orphanCredits(tx, network, [block]))
  // The block is on the chain again, and another transfer is where the made-up one was. Nothing was there to withdraw.
  const [real = assert.fail()] = readingOf(block, [{ transaction: 1, isSigned: false, value: 5n }], [], 0)
  await db.transaction((tx) =>
    upsertCredits(tx, network, { hash: block, number: 7, time: new Date() }, [real], true),
  )
  const rows = await db.query<{ amount: string }>(
    'select amount from credits where block_hash = $1 and orphaned_at is null',
    [block],
  )
  assert.deepEqual(rows, [{ amount: '5' }])
})

test('a nonce that a provider alone told at another place of the block counts where the next one tells it', async () => {
  runs += 1
  const block = `moved${runs}`
  const transfers = [{ transaction: 0, isSigned: true, value: 6n }]
  await read(block, readingOf(block, transfers, [], 0), false)
  await read(block, readingOf(block, transfers, [], 8), false)
  assert.deepEqual(
    (await readLive()).map(({ log_index }) => log_index),
    [8],
  )
  await read(block, readingOf(block, transfers, [], 4), true)
  assert.deepEqual(
    (await readLive()).map(({ log_index }) => log_index),
    [4],
  )
})
