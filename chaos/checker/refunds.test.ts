import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { check } from './check.ts'
import type { Books, History, Refund, Transfer } from './history.ts'
import { noncesOf } from './refunds.ts'
import { type Change, ids, inBooks, soundHistory } from './sound-history.ts'

const sound = soundHistory()
const [payment] = sound.books.credits
assert(payment)
const [firstNonce = '', secondNonce = ''] = noncesOf(sound.books.network, payment)

const refund = (change: Partial<Refund>, id: string = ids.refund): Change =>
  inBooks(({ refunds }) => ({ refunds: refunds.map((row) => (row.id === id ? { ...row, ...change } : row)) }))
const transfers =
  (change: (transfer: Transfer) => readonly Transfer[]): Change =>
  (history) => ({
    ...history,
    chain: {
      ...history.chain,
      transfers: history.chain.transfers.flatMap((row) => (row.nonce === firstNonce ? change(row) : [row])),
    },
  })
const total = (change: Partial<Books['refundTotals'][number]>): Change =>
  inBooks(({ refundTotals }) => ({ refundTotals: refundTotals.map((row) => ({ ...row, ...change })) }))
const answer =
  (change: object): Change =>
  (history: History) => ({
    ...history,
    answers: history.answers.map((row) =>
      row.kind === 'refund' ? { ...row, body: JSON.stringify({ ...JSON.parse(row.body), ...change }) } : row,
    ),
  })

/** Each entry breaks a sound history in one place, and has the violation that the checker must find. */
const broken: readonly [RegExp, string, Change][] = [
  [/went back of/, 'more went back than was paid', transfers((row) => [{ ...row, value: row.value * 5n }])],
  [
    /went back of/,
    'a second slot of the payment paid the rest and more',
    transfers((row) => [row, { ...row, nonce: secondNonce, value: 800_000n }]),
  ],
  [/belongs to no refund/, 'a transfer that no refund accounts for', refund({ nonce: secondNonce })],
  [/belongs to no refund/, 'a refund that has ended and paid', refund({ status: 'FAILED' })],
  [/paid 2 times/, 'one nonce that paid twice', transfers((row) => [row, row])],
  [/went to 0xthief/, 'a transfer to another recipient', transfers((row) => [{ ...row, to: '0xthief' }])],
  [/of a key goes to/, 'a key’s refund to an address that did not pay', refund({ recipient: '0xthief' })],
  [/is SENT, but/, 'a refund that was paid and is not COMPLETED', refund({ status: 'SENT' })],
  [/which does not pay it/, 'COMPLETED without a transfer', transfers(() => [])],
  [
    /belongs to rf_a and rf_b/,
    'two refunds of one nonce',
    refund({ status: 'SIGNED', nonce: firstNonce }, ids.canceled),
  ],
  [
    /COMPLETED by one transfer/,
    'two refunds that one transfer completes',
    refund({ status: 'COMPLETED', nonce: firstNonce, transactionHash: '0xtx16' }, ids.canceled),
  ],
  [/has 0 reserved/, 'a total that was lowered too early', total({ reserved: 0n })],
  [
    /has 250000 reserved/,
    'a canceled refund that still counts',
    refund({ status: 'REQUESTED' }, ids.canceled),
  ],
  [/but 1000000 were paid/, 'a total of another amount than the payment', total({ amount: 9_000_000n })],
  [/have no total/, 'a refund without a total', inBooks(() => ({ refundTotals: [] }))],
  [/was acknowledged as/, 'an answer with another recipient', answer({ recipient: '0xthief' })],
  [/does not exist/, 'an acknowledged refund that was lost', answer({ id: 'rf_lost' })],
  [
    /its last event is/,
    'a completion without its event',
    inBooks(({ events }) => ({ events: events.filter(({ type }) => type !== 'refund.completed') })),
  ],
  [
    /went from reorged to reorged/,
    'events in an impossible order',
    inBooks(({ events }) => ({
      events: events.map((event) =>
        event.type === 'refund.completed' ? { ...event, type: 'refund.reorged' } : event,
      ),
    })),
  ],
]

describe('the checker of refunds', () => {
  for (const [found, what, change] of broken)
    test(`finds ${what}`, () => {
      const violations = check(change(soundHistory())).filter(({ invariant }) => invariant === 'I15')
      assert(
        violations.some((violation) => found.test(violation.what)),
        `found ${violations.map((violation) => violation.what).join('; ') || 'nothing'}`,
      )
    })

  test('a refund that a restore lost after it was paid is still accounted for', () => {
    const history = soundHistory()
    const { refunds, refundTotals, events } = history.books
    const without = {
      ...history.books,
      refunds: refunds.filter(({ id }) => id !== ids.refund),
      refundTotals: refundTotals.map((row) => ({ ...row, reserved: 0n })),
      events: events.filter(({ data }) => data.refund?.id !== ids.refund),
    }
    const lostAt = new Date(2_000_000)
    const restored = {
      ...history,
      books: without,
      restores: [{ copied: without, lost: history.books, lostAt, cursors: [] }],
    }
    assert.deepEqual(
      check(restored).filter(({ invariant }) => invariant === 'I15'),
      [],
    )
    const { restores: _, ...unrestored } = restored
    assert(check(unrestored).some(({ invariant }) => invariant === 'I15'))
  })
})
