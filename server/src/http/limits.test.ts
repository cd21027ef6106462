import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FastifyReply } from 'fastify'
import { Problem } from '../problems.ts'
import { addressBucket, openLimiter } from './limits.ts'

function fakeReply() {
  const headers: Record<string, string> = {}
  return {
    headers,
    reply: { header: (name: string, value: string) => (headers[name] = value) } as unknown as FastifyReply,
  }
}

test('a bucket allows its number of requests per second, then rejects with the time to wait, then refills', () => {
  let now = new Date(1_000_000)
  const limiter = openLimiter('key', 10, () => now)
  const { headers, reply } = fakeReply()
  for (let i = 9; i >= 0; i--) {
    limiter.take('a', reply)
    assert.equal(headers.ratelimit, `"key";r=${i};t=1`)
    assert.equal(headers['ratelimit-policy'], '"key";q=10;w=1')
  }
  assert.throws(
    () => limiter.take('a', reply),
    (error) =>
      error instanceof Problem && error.code === 'rate_limited' && error.extras.retryAfterSeconds === 1,
  )
  limiter.take('b', reply)
  now = new Date(1_000_100)
  limiter.take('a', reply)
  assert.throws(() => limiter.take('a', reply))
  now = new Date(1_002_000)
  for (let i = 0; i < 10; i++) limiter.take('a', reply)
  assert.throws(() => limiter.take('a', reply))
})

test('a clock that goes backwards refills nothing', () => {
  let now = new Date(1_000_000)
  const limiter = openLimiter('key', 1, () => now)
  const { reply } = fakeReply()
  limiter.take('a', reply)
  now = new Date(900_000)
  assert.throws(() => limiter.take('a', reply))
})

test('all addresses in one IPv6 /64 share a bucket, and an IPv4-mapped address counts as IPv4', () => {
  assert.equal(addressBucket('2001:db8:0:1::1'), addressBucket('2001:0db8:0000:0001:ffff:ffff:ffff:ffff'))
  assert.notEqual(addressBucket('2001:db8:0:1::1'), addressBucket('2001:db8:0:2::1'))
  for (const mapped of [
    '::ffff:192.0.2.7',
    '::FFFF:192.0.2.7',
    '::ffff:c000:207',
    '0:0:0:0:0:ffff:c000:0207',
    '0000::ffff:192.0.2.7',
  ])
    assert.equal(addressBucket(mapped), '192.0.2.7', mapped)
  assert.equal(addressBucket('fe80::1%eth0'), 'fe80:0:0:0')
  assert.equal(addressBucket('192.0.2.7'), '192.0.2.7')
  assert.equal(addressBucket('::1'), '0:0:0:0')
})
