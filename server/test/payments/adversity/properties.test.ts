import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CheckoutStatus, Disposition, Finality } from '@farthing/sdk'
import * as fc from 'fast-check'
import { arrows, type Credit, evaluate, type Facts } from '../../../src/checkouts/checkout.ts'
import { trials } from './size.ts'

const statuses = Object.keys(arrows) as CheckoutStatus[]
const finalities: readonly Finality[] = ['included', 'safe', 'finalized']
const expiresAt = new Date('2026-01-01T12:00:00Z')
const due = 1_000_000n

type Case = {
  readonly checkout: { status: CheckoutStatus; expiresAt: Date; finality: Finality }
  readonly facts: Facts
  readonly now: Date
}

/** Times around the checkout's expiry, including the exact moment. */
const anyTime = fc
  .integer({ min: -3, max: 3 })
  .map((minutes) => new Date(expiresAt.getTime() + minutes * 60_000))

const anyCredit = fc.record({
  amount: fc.constantFrom(1n, due - 1n, due, due, due, due + 1n),
  due: fc.constantFrom(due, due, due, null),
  isClaimed: fc.boolean(),
  isAccepted: fc.constantFrom(false, false, false, true),
  firstBlockTime: anyTime,
  blockNumber: fc.integer({ min: 1, max: 4 }),
  disposition: fc.constantFrom<Disposition>('late', 'underpaid', 'overpaid', 'overpaid', 'unmatched'),
  finality: fc.constantFrom(...finalities),
  counts: fc.boolean(),
  isRefunded: fc.boolean(),
})

/** Any facts that the database can hold: at most one credit is exact, and no two share a place in a block. */
const anyCase: fc.Arbitrary<Case> = fc
  .record({
    status: fc.constantFrom(...statuses),
    finality: fc.constantFrom(...finalities),
    credits: fc.array(anyCredit, { maxLength: 5 }),
    exact: fc.option(fc.nat(4), { nil: -1 }),
    hasUnresolved: fc.boolean(),
    readUntil: fc.option(anyTime),
    now: anyTime,
  })
  .map(({ status, finality, credits, exact, hasUnresolved, readUntil, now }) => ({
    checkout: { status, finality, expiresAt },
    now,
    facts: {
      hasUnresolved,
      readUntil,
      credits: credits.map((credit, i) => ({
        ...credit,
        key: `credit ${i}`,
        logIndex: i,
        disposition: i === exact ? 'exact' : credit.disposition,
      })),
    },
  }))

const numRuns = trials(10_000, 500_000)

function holds(check: (input: Case, result: ReturnType<typeof evaluate>) => void): void {
  void fc.assert(
    fc.property(anyCase, (input) => check(input, evaluate(input.checkout, input.facts, input.now))),
    { numRuns },
  )
}

/** The same checkout after the result is written. */
function write(input: Case, { status, dispositions }: ReturnType<typeof evaluate>): Case {
  const credits = input.facts.credits.map((credit) => ({
    ...credit,
    disposition: dispositions.get(credit.key) ?? credit.disposition,
  }))
  return { ...input, checkout: { ...input.checkout, status }, facts: { ...input.facts, credits } }
}

function again(input: Case): ReturnType<typeof evaluate> {
  return evaluate(input.checkout, input.facts, input.now)
}

/** A late payment stays late. */
const isOnTime = (credit: Credit) =>
  credit.disposition !== 'late' && (credit.isClaimed || credit.firstBlockTime <= expiresAt)

test('whatever the facts, evaluate follows an allowed edge or keeps the status', () => {
  holds(({ checkout: { status: from } }, { status: to }) => {
    assert(to === from || arrows[from][to], `${from} -> ${to}`)
    assert.notEqual(from !== to && to, 'CANCELED', 'only the store may cancel')
  })
})

test('evaluating twice gives the same result as once, except for the two steps out of COMPLETED', () => {
  holds((input, first) => {
    const written = write(input, first)
    const second = again(written)
    assert.deepEqual(second.dispositions, first.dispositions)
    if (input.checkout.status === 'COMPLETED' && first.status === 'PROCESSING') {
      // Taken back: PROCESSING is reported first, and the next evaluation decides what follows.
      const third = again(write(written, second))
      assert.deepEqual(third, second)
    } else assert.equal(second.status, first.status)
  })
})

test('at most one credit is exact, and a COMPLETED checkout has one', () => {
  holds((_, { status, dispositions }) => {
    const exact = [...dispositions.values()].filter((disposition) => disposition === 'exact')
    assert(exact.length <= 1)
    if (status === 'COMPLETED') assert.equal(exact.length, 1)
  })
})

test('an exact credit stays exact while it is live', () => {
  holds(({ facts }, { dispositions }) => {
    for (const { key, disposition } of facts.credits)
      if (disposition === 'exact') assert.equal(dispositions.get(key), 'exact')
  })
})

test('a credit becomes exact only if it is the earliest that is accepted, or on time and for the whole amount, and none of it goes back', () => {
  holds(({ checkout, facts: { credits } }, { dispositions }) => {
    const chosen = credits.find(({ key }) => dispositions.get(key) === 'exact')
    const fits = credits.filter(
      (credit) =>
        !credit.isRefunded &&
        (credit.isAccepted ||
          (checkout.status !== 'CANCELED' && credit.amount === credit.due && isOnTime(credit))),
    )
    if (credits.some(({ disposition }) => disposition === 'exact')) return
    const [earliest] = fits.toSorted(
      (a, b) =>
        a.firstBlockTime.getTime() - b.firstBlockTime.getTime() ||
        a.blockNumber - b.blockNumber ||
        a.logIndex - b.logIndex,
    )
    assert.equal(chosen?.key, earliest?.key)
  })
})

test('a checkout is COMPLETED if and only if it has an exact credit that counts and is as final as the store asked', () => {
  holds(({ checkout, facts: { credits } }, { status, dispositions }) => {
    const exact = credits.find(({ key }) => dispositions.get(key) === 'exact')
    const isPaid =
      exact?.counts === true && finalities.indexOf(exact.finality) >= finalities.indexOf(checkout.finality)
    assert.equal(status === 'COMPLETED', isPaid)
  })
})

test('CANCELED and EXPIRED change only to COMPLETED', () => {
  holds(({ checkout: { status: from } }, { status: to }) => {
    if (from === 'CANCELED' || from === 'EXPIRED') assert(to === from || to === 'COMPLETED', to)
  })
})

test('a checkout with a reserved amount expires only once its chain has been read up to its expiry', () => {
  holds(({ checkout: { status: from }, facts: { readUntil }, now }, { status: to }) => {
    if (from === 'EXPIRED' || to !== 'EXPIRED') return
    assert(now >= expiresAt)
    assert(readUntil === null || readUntil >= expiresAt)
  })
})

test('a payment is late if and only if it came after the expiry and was not claimed before it', () => {
  holds(({ checkout, facts: { credits } }, { dispositions }) => {
    for (const credit of credits) {
      const disposition = dispositions.get(credit.key)
      if (disposition === 'exact') continue
      if (checkout.status === 'CANCELED') assert.equal(disposition, 'late')
      else assert.equal(disposition === 'late', !isOnTime(credit))
    }
  })
})

test('nobody is invited to pay while a payment is on its way or has arrived', () => {
  holds(({ facts: { hasUnresolved } }, { status, dispositions }) => {
    if (status !== 'OPEN') return
    assert(!hasUnresolved)
    assert(![...dispositions.values()].includes('exact'))
  })
})

test('the order in which credits are read changes nothing', () => {
  holds((input, { status, dispositions }) => {
    const credits = input.facts.credits.toReversed()
    const other = evaluate(input.checkout, { ...input.facts, credits }, input.now)
    assert.equal(other.status, status)
    for (const [key, disposition] of dispositions) assert.equal(other.dispositions.get(key), disposition)
  })
})
