import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noFigures, takenKey } from './rollup.ts'
import { spanOf, toSum } from './takings.ts'

const usdc = ['eip155:8453', '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'] as const
const figures = {
  ...noFigures,
  made: 6,
  paid: 3,
  expired: 1,
  canceled: 1,
  taken: {
    [takenKey(...usdc, 'USD')]: { payments: 2, received: 20_000_000n, priced: 20_000_000n },
    [takenKey(...usdc, 'EUR')]: { payments: 1, received: 10_000_017n, priced: 8_600_000n },
  },
}

test('in dollars every token counts as received, unless the price was in dollars', () => {
  const { amount, average, converted, left, open } = toSum(figures, 'USD', null)
  assert.deepEqual(
    { amount, average, converted, left, open },
    {
      amount: 30_000_017n,
      average: 10_000_005n,
      converted: 0n,
      left: [],
      open: 1,
    },
  )
})

test('in another currency its own prices count as they were, and the rest by the rate, which is said', () => {
  const quote = { source: 'fixed', perBase: '0.86', usdPerBase: '1', asOf: new Date(0) }
  const { amount, converted } = toSum(figures, 'EUR', quote)
  assert.deepEqual([amount, converted], [25_800_000n, 17_200_000n])
})

test('without a rate an amount stands beside the sum and no average is made of the rest', () => {
  const { amount, left, average, payments } = toSum(figures, 'EUR', null)
  assert.deepEqual([amount, average, payments], [8_600_000n, null, 3])
  assert.deepEqual(left, [{ symbol: 'USDC', units: 20_000_000n, decimals: 6 }])
})

test('a period is compared with the one before, up to the same day, or all of it if that was shorter', () => {
  assert.deepEqual(spanOf('today', '2026-11-16'), {
    from: '2026-11-16',
    to: '2026-11-16',
    beforeFrom: '2026-11-15',
    beforeTo: '2026-11-14',
    cutDay: '2026-11-15',
  })
  assert.deepEqual(spanOf('week', '2026-11-18'), {
    from: '2026-11-16',
    to: '2026-11-18',
    beforeFrom: '2026-11-09',
    beforeTo: '2026-11-10',
    cutDay: '2026-11-11',
  })
  assert.deepEqual(spanOf('month', '2026-11-16'), {
    from: '2026-11-01',
    to: '2026-11-16',
    beforeFrom: '2026-10-01',
    beforeTo: '2026-10-15',
    cutDay: '2026-10-16',
  })
  assert.deepEqual(spanOf('month', '2026-03-30'), {
    from: '2026-03-01',
    to: '2026-03-30',
    beforeFrom: '2026-02-01',
    beforeTo: '2026-02-28',
    cutDay: null,
  })
})

test('a range is compared with as many days before it, a whole month with the month before', () => {
  const today = '2026-11-19'
  const span = (from: string, to: string) => Object.values(spanOf({ from, to }, today))
  assert.deepEqual(span('2026-10-01', '2026-10-31'), [
    '2026-10-01',
    '2026-10-31',
    '2026-09-01',
    '2026-09-30',
    null,
  ])
  assert.deepEqual(span('2026-02-01', '2026-02-28'), [
    '2026-02-01',
    '2026-02-28',
    '2026-01-01',
    '2026-01-31',
    null,
  ])
  assert.deepEqual(span('2026-10-05', '2026-10-11'), [
    '2026-10-05',
    '2026-10-11',
    '2026-09-28',
    '2026-10-04',
    null,
  ])
  assert.deepEqual(span('2026-11-18', '2026-11-19'), [
    '2026-11-18',
    '2026-11-19',
    '2026-11-16',
    '2026-11-16',
    '2026-11-17',
  ])
})

test('a range ends today at the latest, begins before it ends, and has at most 400 days', () => {
  const bounds = (from: string, to: string) => {
    const span = spanOf({ from, to }, '2026-11-19')
    return [span.from, span.to]
  }
  assert.deepEqual(bounds('2026-11-01', '2027-05-05'), ['2026-11-01', '2026-11-19'])
  assert.deepEqual(bounds('2026-11-10', '2026-11-01'), ['2026-11-01', '2026-11-01'])
  assert.deepEqual(bounds('0001-01-01', '2026-11-19'), ['2025-10-16', '2026-11-19'])
  assert.deepEqual(bounds('2030-01-01', '2031-01-01'), ['2026-11-19', '2026-11-19'])
})
