import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Follower } from '../rows.ts'
import { beginLook, cadence, type Demand, endLook, openWatch, untilDue } from './cadence.ts'

const idle: Demand = { isAwake: false, sentAgoMs: null, sent: [] }
const awake: Demand = { ...idle, isAwake: true }
const sending = (sentAgoMs: number | null): Demand => ({
  ...awake,
  ...(sentAgoMs !== null && { sentAgoMs, sent: ['0x01'] }),
})
const start = 1_000_000_000_000
const stepMs = 10

const followerAt = (headMs: number, now: number, blockTimeMs: number | null = 200): Follower => ({
  headNumber: 1_000,
  headTime: new Date(headMs),
  headAgeSeconds: (now - headMs) / 1_000,
  baseFee: 1n,
  ...{ safeNumber: 0, finalizedNumber: 0, settledNumber: 0, dispute: null, blockTimeMs },
})

/** When looks begin in this time, each taking what is new at once. */
function looksIn(ms: number, demandAt: (now: number) => Demand): number[] {
  const watch = openWatch()
  const looks: number[] = []
  let headMs = start
  for (let now = start; now < start + ms; now += stepMs) {
    const follower = followerAt(headMs, now)
    if (untilDue(watch, follower, demandAt(now), now) > 0) continue
    beginLook(watch, follower, demandAt(now), now)
    endLook(watch, false, null)
    headMs = now
    looks.push(now - start)
  }
  return looks
}

test('an idle chain is looked at every half minute, and one that somebody may be paying on every two seconds', () => {
  assert.deepEqual(
    looksIn(100_000, () => idle),
    [30_000, 60_000, 90_000],
  )
  assert.equal(looksIn(100_000, () => awake).length, 50)
})

test('a chain that was idle is looked at as soon as somebody looks at a checkout', () => {
  const looks = looksIn(40_000, (now) => (now - start < 37_123 ? idle : awake))
  assert.deepEqual(looks, [30_000, 37_130, 39_130])
})

test('a transaction is looked for when it may be mined, soon again, and no more often than an awake chain once it is late', () => {
  const sentAt = start + 50_700
  const looks = looksIn(60_000, (now) => sending(now < sentAt ? null : now - sentAt))
    .map((look) => look - 50_700)
    .filter((look) => look >= 0)
  assert.deepEqual(looks.slice(0, 4), [200, 350, 530, 800])
  assert(looks.filter((look) => look < 2_000).length <= 7)
  for (const [i, look] of looks.entries())
    if (look > 8_000) assert.equal(look - (looks[i - 1] ?? 0), cadence.awakeMs)
})

test('however many transactions are sent, looks keep their distance', () => {
  const looks = looksIn(60_000, (now) => sending((now - start) % 370))
  assert(looks.every((look, i) => i === 0 || look - (looks[i - 1] ?? 0) >= cadence.sentMs))
})

test('an idle look reads up to a block that is a few seconds old, and asks for the head only if it does not find that', () => {
  const watch = openWatch()
  const now = start + 30_000
  const first = beginLook(watch, followerAt(start, now), idle, now)
  assert.equal(first.expected, 1_000 + (30_000 - cadence.idleLagMs) / 200)
  endLook(watch, { unmet: first.expected ?? 0 }, first.expected)
  const later = now + 2_000
  assert.equal(beginLook(watch, followerAt(start, later), idle, later).expected, null)
  const unmeasured = beginLook(openWatch(), followerAt(start, now, null), idle, now)
  assert.equal(unmeasured.expected, null)
})

test('a range that a provider lacked is read once more, soon, and then another', () => {
  const watch = openWatch()
  const follower = followerAt(start, start + 2_000)
  endLook(watch, { unmet: 1_010 }, beginLook(watch, follower, awake, start).expected)
  assert.equal(untilDue(watch, follower, awake, start), cadence.againMs)
  const again = beginLook(watch, follower, awake, start + cadence.againMs)
  assert.equal(again.expected, 1_010)
  endLook(watch, { unmet: 1_010 }, again.expected)
  assert.equal(beginLook(watch, follower, awake, start + 2_300).expected, null)
})

test('after a pause no provider counts as late until it was waited for', () => {
  const watch = openWatch()
  const ages = [30_000, 30_300, 32_300, 34_300, 64_300].map((ms) => {
    const now = start + ms
    return beginLook(watch, followerAt(start, now), awake, now).follower.headAgeSeconds
  })
  assert.deepEqual(ages, [0, 0.3, 2.3, 4.3, 0])
})

test('a clock that is set back delays no look', () => {
  const watch = openWatch()
  beginLook(watch, followerAt(start, start), awake, start)
  assert(untilDue(watch, followerAt(start, start), awake, start - 3_600_000) <= 0)
})

test('while a transaction is not mined, the chain is searched as soon as a peek finds it, and every few seconds in any case', () => {
  const watch = openWatch()
  const searches: number[] = []
  for (let now = start; now < start + 20_000; now += stepMs) {
    const follower = followerAt(now, now)
    const demand = sending(now - start)
    if (untilDue(watch, follower, demand, now) > 0) continue
    const { isPeek } = beginLook(watch, follower, demand, now)
    endLook(watch, isPeek ? 'unmined' : false, null)
    if (!isPeek) searches.push(now)
  }
  assert(searches.length >= 5)
  for (const [i, at] of searches.entries())
    if (i > 0) assert(at - (searches[i - 1] ?? 0) < cadence.peekMs + cadence.awakeMs)
})

test('nothing that is due waits for a peek: a first look, one after a pause, and a range that could not be read', () => {
  const demand = sending(200)
  const follower = followerAt(start, start)
  const watch = openWatch()
  assert.equal(beginLook(watch, follower, demand, start).isPeek, false)
  endLook(watch, false, null)
  assert.equal(beginLook(watch, follower, demand, start + 200).isPeek, true)
  endLook(watch, 'unmined', null)
  assert.equal(beginLook(watch, follower, awake, start + 400).isPeek, false)
  endLook(watch, { unmet: 1_001 }, null)
  assert.equal(beginLook(watch, follower, demand, start + 600).isPeek, false)
  endLook(watch, false, null)
  const later = start + 600 + cadence.pauseMs + 1
  assert.equal(beginLook(watch, follower, demand, later).isPeek, false)
  endLook(watch, false, null)
  assert.equal(beginLook(watch, follower, demand, later - 60_000).isPeek, false)
})
