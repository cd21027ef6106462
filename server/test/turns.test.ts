/** In the gate, tests take turns: over as many commits as there are turns each file runs, and no turn takes too long. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  chooseDue,
  countCommits,
  isPartDue,
  perCommitOnCircle,
  planTurns,
  readTimes,
  secondsOf,
  type TestFile,
  timed,
} from './support/turns.ts'

const root = new URL('../../', import.meta.url).pathname
const all = globSync('{server,sdk,cli,mcp,examples,chaos}/**/*.test.ts', {
  cwd: root,
  exclude: ['**/node_modules/**'],
})
const times = readTimes()
const plan = planTurns(all.map((name) => timed(name, times)))

/** What would run, as it is printed: one part of it per command. */
function list(environment: Readonly<Record<string, string>>, ...flags: string[]): string[] {
  const text = execFileSync(process.execPath, ['server/test/run.ts', '--list', ...flags], {
    cwd: root,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, ...environment },
  })
  return text.trimEnd().split('\n')
}

test('every file runs with one of so many commits', () => {
  for (const first of [0, 1_499]) {
    const ran = plan.turns.flatMap((_, i) => chooseDue(plan, first + i, new Set()))
    assert.deepEqual(new Set(ran.map(({ name }) => name)), new Set(all))
  }
})

test('no turn takes more than 13 minutes, nor a tenth more than another', () => {
  const seconds = plan.turns.map((_, commits) => secondsOf(chooseDue(plan, commits, new Set())))
  assert(Math.max(...seconds) <= 13 * 60, `${seconds}`)
  assert(Math.max(...seconds) <= 1.1 * Math.min(...seconds), `${seconds}`)
})

test('the gate runs the files whose turn it is, and prints them', () => {
  const due = chooseDue(plan, countCommits(), new Set()).map(({ name }) => name)
  const listed = [list({ CI: 'true' }), list({ CI: 'true' }, '--long')].flatMap(
    ([heading = '', ...names]) => {
      const turn = `^turn \\d+ of ${plan.turns.length}: ${names.length} of \\d+ files, about \\d+\\.\\d minutes$`
      assert.match(heading, new RegExp(turn))
      return names
    },
  )
  assert.equal(new Set(listed).size, listed.length)
  assert.deepEqual(
    due.filter((name) => !listed.includes(name)),
    [],
  )
})

test('outside the gate every file runs, whatever turn it is', () => {
  assert.deepEqual([...list({}), ...list({}, '--long')].sort(), all.toSorted())
})

test('on Circle’s token as well every file runs with one of so many commits, for less than two minutes each', () => {
  const onCircle = list({}, '--circle')
  for (const central of [
    'checkouts/pay',
    'refunds/sign',
    'chains/evm/batcher',
    'payments/adversity/races',
    'payments/crash/crash-points',
  ])
    assert(onCircle.includes(`server/test/${central}.test.ts`), central)
  const { always, turns } = planTurns(
    onCircle.map((name) => timed(name, times)),
    perCommitOnCircle,
  )
  assert.deepEqual(always, [])
  assert.deepEqual(new Set(turns.flat().map(({ name }) => name)), new Set(onCircle))
  for (const turn of turns) assert(secondsOf(turn) < 100, `${secondsOf(turn)}`)
  const due = turns[countCommits() % turns.length] ?? assert.fail()
  const [, ...listed] = list({ CI: 'true' }, '--circle')
  assert.deepEqual(listed, due.map(({ name }) => name).sort())
})

const files = fc
  .uniqueArray(fc.record({ name: fc.string(), seconds: fc.nat(200) }), { selector: ({ name }) => name })
  .map((some): TestFile[] => some)

test('however long files take, none is left out, more of them make more turns, and what is cheap always runs', () => {
  fc.assert(
    fc.property(files, fc.nat(10_000), (some, commits) => {
      const { always, turns } = planTurns(some)
      assert.deepEqual(
        new Set([...always, ...turns.flat()].map(({ name }) => name)),
        new Set(some.map(({ name }) => name)),
      )
      const longest = Math.max(0, ...some.map(({ seconds }) => seconds))
      assert(turns.every((turn) => secondsOf(turn) + secondsOf(always) <= 720 + longest))
      const cheapest = Math.min(...turns.flat().map(({ seconds }) => seconds))
      assert(always.every(({ seconds }) => seconds <= cheapest))
      // The order in which files are found changes nothing.
      assert.deepEqual(planTurns(some.toReversed()), { always, turns })
      const [changed] = some
      if (changed) assert(chooseDue({ always, turns }, commits, new Set([changed.name])).includes(changed))
    }),
  )
})

test('every part of a file runs, however many turns there are and whenever the file is due', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 1, max: 6 }),
      fc.nat(10_000),
      (fileTurns, parts, first) => {
        const due = Array.from({ length: parts }, (_, i) => first + i * fileTurns)
        for (let place = 0; place < parts; place++)
          assert.equal(due.filter((commits) => isPartDue(place, parts, commits, fileTurns)).length, 1)
      },
    ),
  )
})
