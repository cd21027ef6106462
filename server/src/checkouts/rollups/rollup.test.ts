import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { addFigures, bucketOf, type Figures, fromStored, medianMs, noFigures, toStored } from './rollup.ts'

const plain = { noNullPrototype: true }
const figures: fc.Arbitrary<Figures> = fc.record(
  {
    made: fc.nat(9),
    paid: fc.nat(9),
    expired: fc.nat(9),
    canceled: fc.nat(9),
    taken: fc.dictionary(
      fc.constantFrom('a b USD', 'a b EUR'),
      fc.record(
        {
          payments: fc.integer({ min: 1, max: 9 }),
          received: fc.bigInt(1n, 10n ** 30n),
          priced: fc.bigInt(1n, 9n),
        },
        plain,
      ),
      plain,
    ),
    times: fc.dictionary(fc.constantFrom('0', '12', '80'), fc.integer({ min: 1, max: 9 }), plain),
  },
  plain,
)

test('figures can be added in any order, taken back, and stored, without a trace', () => {
  fc.assert(
    fc.property(figures, figures, (a, b) => {
      assert.deepEqual(addFigures(a, b), addFigures(b, a))
      assert.deepEqual(addFigures(addFigures(a, b), b, -1), a)
      assert.deepEqual(addFigures(noFigures, a), a)
      assert.deepEqual(fromStored(JSON.parse(JSON.stringify(toStored(a)))), a)
    }),
  )
})

test('a median from buckets is within a fifth of the exact one, and no median is made up', () => {
  assert.equal(medianMs({}), null)
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1_000, max: 604_800_000 }), { minLength: 1 }), (all) => {
      const times: Record<string, number> = {}
      for (const ms of all) times[bucketOf(ms)] = (times[bucketOf(ms)] ?? 0) + 1
      const exact = all.toSorted((a, b) => a - b)[Math.ceil(all.length / 2) - 1]
      const found = medianMs(times)
      assert(exact && found && found / exact < 1.2 && found / exact > 0.8, `${found} for ${exact}`)
    }),
  )
})
