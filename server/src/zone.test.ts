import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  addDays,
  dayRange,
  knownZone,
  listOffsets,
  localTime,
  monthBefore,
  nextHour,
  startOfDay,
  weekdayOf,
} from './zone.ts'

/** Offsets of whole hours, of 30 and 45 minutes, both ends of the world, and clocks that change at midnight. */
const zones = [
  'UTC',
  'Europe/Madrid',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'Pacific/Kiritimati',
  'Pacific/Pago_Pago',
  'America/Santiago',
  'Australia/Lord_Howe',
]

test('every moment is in the range of its own day, whatever the zone and the season', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...zones),
      fc.date({ min: new Date('2025-01-01'), max: new Date('2028-01-01'), noInvalidDate: true }),
      (zone, time) => {
        const { day, minutes } = localTime(time, zone)
        const { from, before } = dayRange(day, zone)
        assert(from <= time && time < before, `${time.toISOString()} in ${zone}`)
        assert(before.getTime() - from.getTime() === 28 * 3_600_000)
        assert(minutes >= 0 && minutes < 1_440)
      },
    ),
  )
})

test('a quarter hour is a whole number of quarter hours from midnight in every zone', () => {
  for (const zone of zones)
    for (const at of ['2026-01-15T10:30:00Z', '2026-07-15T10:30:00Z'])
      assert.equal(localTime(new Date(at), zone).minutes % 15, 0, zone)
})

test('weeks begin on Monday, months have their own lengths, and an unknown zone is UTC', () => {
  assert.equal(weekdayOf('2026-11-16'), 0)
  assert.equal(addDays('2026-02-28', 1), '2026-03-01')
  assert.equal(monthBefore('2026-01-15'), '2025-12-15')
  assert.equal(monthBefore('2026-03-30'), null)
  assert.equal(knownZone('Mars/Olympus'), 'UTC')
})

test('a day begins at its first minute, and an hour of the day comes once a day, in every zone', () => {
  const moment = fc.date({ min: new Date('2024-01-01'), max: new Date('2030-01-01'), noInvalidDate: true })
  fc.assert(
    fc.property(moment, fc.constantFrom(...zones), (time, zone) => {
      const start = startOfDay(time, zone)
      assert(start <= time)
      assert.equal(localTime(start, zone).day, localTime(time, zone).day)
      assert.notEqual(localTime(new Date(start.getTime() - 1), zone).day, localTime(time, zone).day)
      const eight = nextHour(time, zone, 8)
      assert.equal(localTime(eight, zone).minutes, 480)
      const aheadMs = eight.getTime() - time.getTime()
      assert(aheadMs > 0 && aheadMs <= 25 * 3_600_000, `${aheadMs}`)
    }),
  )
})

test('the list of offsets has every change of a zone’s clocks', () => {
  const hourMs = 3_600_000
  const [from, before] = [Date.UTC(2019, 0, 1), Date.UTC(2050, 0, 1)]
  const check = (zone: string, time: number) => {
    const { ms } = listOffsets(zone).findLast((each) => each.from <= time) ?? assert.fail(zone)
    const there = new Date(time + ms)
    const { day, minutes } = localTime(new Date(time), zone)
    assert.equal(there.toISOString().slice(0, 10), day, `${time} in ${zone}`)
    assert.equal(there.getUTCHours() * 60 + there.getUTCMinutes(), minutes, `${time} in ${zone}`)
  }
  for (const zone of ['Asia/Gaza', 'Australia/Lord_Howe'])
    for (let at = from; at < before; at += 47 * hourMs) check(zone, at)
  fc.assert(
    fc.property(
      fc.constantFrom(...Intl.supportedValuesOf('timeZone')),
      fc.integer({ min: from, max: before }),
      (zone, time) => check(zone, time),
    ),
  )
})
