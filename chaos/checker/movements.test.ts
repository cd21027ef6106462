import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Books, History, Movement } from './history.ts'
import { checkMovements } from './movements.ts'
import { ids, inBooks, soundHistory } from './sound-history.ts'

/** The sound history with a refund that is final and has its line. */
function withRefund(): History {
  const line: Movement = {
    ...{ storeId: 'st_a', number: 3, network: 'eip155:31337', type: 'refund', bookedAt: new Date(2_000_000) },
    ...{ asset: '0xtoken', amount: -250_000n, wallet: '0xwallet-a', transactionHash: '0xtx16' },
    ...{ paymentId: 'pay_0x01', refundId: ids.refund, reverses: null },
  }
  return inBooks(({ movements, refunds }) => ({
    movements: [...movements, line],
    refunds: refunds.map((row) => (row.id === ids.refund ? { ...row, finality: 'finalized' } : row)),
  }))(soundHistory())
}

const lines = (change: (movements: readonly Movement[]) => readonly Movement[]) =>
  inBooks(({ movements }: Books) => ({ movements: change(movements) }))
const changed = (number: number, change: Partial<Movement>) =>
  lines((all) => all.map((line) => (line.number === number ? { ...line, ...change } : line)))
/** Adds a copy of a line at the end. */
const again = (number: number, change: Partial<Movement> = {}) =>
  lines((all) => {
    const line = all.find((each) => each.number === number)
    assert(line)
    return [...all, { ...line, number: all.length + 1, ...change }]
  })

/** Each entry breaks the books in one place, and has the violation that the checker must find. */
const broken: readonly [RegExp, string, (history: History) => History][] = [
  [/is twice in the books/, 'a payment is booked twice', again(1)],
  [
    /final and in no books/,
    'a final payment is left out',
    lines((all) => all.filter(({ number }) => number !== 2)),
  ],
  [/at place/, 'a number is missing', lines((all) => all.filter(({ number }) => number !== 1))],
  [/has 2 lines instead of 1/, 'a refund is booked twice', again(3)],
  [/has 0 lines instead of 1/, 'a refund is left out', lines((all) => all.slice(0, 2))],
  [/booked before line/, 'a line is older than the one before', changed(2, { bookedAt: new Date(0) })],
  [/differs from pay_/, 'a line has another amount than its payment', changed(1, { amount: 1n })],
  [/its lines are/, 'the lines of a wallet add up to more than came', changed(1, { amount: 1_000_001n })],
  [/in the books of/, 'a payment is in another store’s books', changed(1, { storeId: 'st_b' })],
  [/of wallet/, 'a refund moved no wallet', changed(3, { wallet: null })],
  [
    /which is gone/,
    'a payment of which the chain has no more is not taken back',
    (history) => {
      const gone = inBooks(({ credits }) => ({
        credits: credits.map((row) =>
          row.paymentId === 'pay_0x01' ? { ...row, isOrphaned: true, reversedAt: new Date(0) } : row,
        ),
      }))
      return gone(history)
    },
  ],
  [
    /not the opposite/,
    'a counter line has another amount',
    again(2, { type: 'payment_reversed', amount: -1n, reverses: 2 }),
  ],
  [
    /taken back twice/,
    'a line is taken back twice',
    (history) => {
      const back = again(2, { type: 'payment_reversed', amount: -1_000_000n, reverses: 2 })
      return back(back(history))
    },
  ],
  [/as declared/, 'a refund is declared that was not', again(3, { type: 'refund_declared', wallet: null })],
]

describe('the books of a run', () => {
  test('are sound with payments, a refund, and one that is not final', () => {
    assert.deepEqual(checkMovements(soundHistory()), [])
    assert.deepEqual(checkMovements(withRefund()), [])
  })

  test('may miss what a process that was ended had yet to book', () => {
    const ended = lines((all) => all.filter(({ number }) => number === 1))(soundHistory())
    assert.equal(checkMovements(ended).length > 0, true)
    assert.deepEqual(checkMovements(inBooks(() => ({ due: ['pay_0x02'] }))(ended)), [])
  })

  for (const [expected, what, breakIt] of broken)
    test(`are not sound if ${what}`, () => {
      const found = checkMovements(breakIt(withRefund())).map((violation) => violation.what)
      assert(
        found.some((sentence) => expected.test(sentence)),
        found.join('; '),
      )
    })
})
