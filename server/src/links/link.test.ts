import assert from 'node:assert/strict'
import { test } from 'node:test'
import { statusOf } from './link.ts'

const at = new Date(0)

test('a paid link stays paid, a closed one stays closed, and another ends with its time', () => {
  const facts = [null, at].flatMap((paidAt) =>
    [null, at].flatMap((closedAt) => [false, true].map((isOver) => ({ paidAt, closedAt, isOver }))),
  )
  assert.deepEqual(facts.map(statusOf), [
    ...['ACTIVE', 'ENDED', 'CLOSED', 'CLOSED'],
    ...['PAID', 'PAID', 'PAID', 'PAID'],
  ])
})
