import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RefundStatus } from '@farthing/sdk'
import fc from 'fast-check'
import { arrows, evaluateRefund, isCounted, type RefundFacts } from './refund.ts'

const statuses = Object.keys(arrows) as RefundStatus[]
const states = ['prepared', 'claimed', 'sent', 'rejected', 'dead', null] as const

/** Any facts that the database can hold: what has ended was proven dead, and what is declared or named is not signed. */
const anyFacts: fc.Arbitrary<RefundFacts> = fc
  .record({
    status: fc.constantFrom(...statuses),
    way: fc.constantFrom('signed' as const, 'self-sent' as const),
    isSigned: fc.boolean(),
    isCancelAsked: fc.boolean(),
    isDeclared: fc.boolean(),
    isNamed: fc.boolean(),
    authorization: fc.constantFrom(...states),
    isTransferred: fc.boolean(),
  })
  .filter(({ way, isNamed, isSigned, authorization }) =>
    way === 'self-sent'
      ? authorization === null && !isSigned
      : !isNamed &&
        (authorization === null || authorization === 'prepared' || authorization === 'dead' || isSigned),
  )
  .filter(
    ({ isSigned, isCancelAsked, isDeclared }) =>
      [isSigned, isCancelAsked, isDeclared].filter(Boolean).length < 2,
  )

function holds(check: (facts: RefundFacts, status: RefundStatus) => void): void {
  fc.assert(
    fc.property(anyFacts, (facts) => check(facts, evaluateRefund(facts))),
    { numRuns: 5_000 },
  )
}

test('a refund is COMPLETED if and only if its own transfer is part of the chain', () => {
  holds(({ isTransferred }, status) => assert.equal(status === 'COMPLETED', isTransferred))
})

test('a refund stops counting only if nothing that was handed out for it can move money', () => {
  holds((facts, status) => {
    if (isCounted(status) || !isCounted(facts.status)) return
    assert(facts.authorization === null || facts.authorization === 'dead')
    assert(!facts.isTransferred)
  })
})

test('evaluating twice gives the same result as once, except for the step out of COMPLETED', () => {
  holds((facts, status) => {
    if (facts.status !== 'COMPLETED') assert.equal(evaluateRefund({ ...facts, status }), status)
  })
})

test('one that nobody signed can be prepared again after what was handed out has expired', () => {
  const facts: RefundFacts = {
    status: 'REQUESTED',
    way: 'signed',
    isSigned: false,
    isCancelAsked: false,
    isDeclared: false,
    isNamed: false,
    authorization: 'dead',
    isTransferred: false,
  }
  assert.equal(evaluateRefund(facts), 'REQUESTED')
  assert.equal(evaluateRefund({ ...facts, isCancelAsked: true }), 'CANCELED')
  assert.equal(evaluateRefund({ ...facts, isSigned: true, status: 'SENT' }), 'FAILED')
})
