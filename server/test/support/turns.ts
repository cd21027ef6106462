/**
 * In the gate, tests take turns: the cheapest files run with every commit, the others with one commit in so many that
 * the tests of one commit stay within `perCommit`. Which is which follows from the times that
 * `npm test -- --record` stores in `server/test/times.json`. More tests make more turns, not longer ones. A file that a
 * commit changes runs with that commit in any case. Outside the gate all files run every time.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

export type TestFile = {
  readonly name: string
  /** What it adds to the length of a run. */
  readonly seconds: number
}
export type Plan = { readonly always: readonly TestFile[]; readonly turns: readonly (readonly TestFile[])[] }

/** One more than the cores of the smallest machine: many tests wait for a block, a time-out or a browser. */
export const filesAtOnce = 3
const perCommit = { seconds: 720, always: 120 }
/** For the second pass, on Circle's token. With what it takes to start, it adds less than two minutes to a commit. */
export const perCommitOnCircle = { seconds: 75, always: 0 }
/** A file whose time is not stored. Together such files take about this much each. */
const secondsUnrecorded = 15

export const timesFile = new URL('../times.json', import.meta.url)

export function readTimes(): Readonly<Record<string, number>> {
  return JSON.parse(readFileSync(timesFile, 'utf8'))
}

export const isInGate = (): boolean => process.env.CI === 'true'

/** Load tests have the machine to themselves, one after the other. */
export const isLoad = (name: string): boolean => name.includes('/load/')

export function timed(name: string, times: Readonly<Record<string, number>>): TestFile {
  return { name, seconds: (times[name] ?? secondsUnrecorded) / (isLoad(name) ? 1 : filesAtOnce) }
}

/**
 * Divides files into turns that take about equally long: each file, the longest first, joins the shortest turn. The
 * cheapest, as many as fit into the seconds of `always`, are in every turn.
 */
export function planTurns(files: readonly TestFile[], limits = perCommit): Plan {
  const sorted = files.toSorted((a, b) => a.seconds - b.seconds || (a.name < b.name ? -1 : 1))
  let used = 0
  const first = sorted.findIndex(({ seconds }) => {
    used += seconds
    return used > limits.always
  })
  const always = first === -1 ? sorted : sorted.slice(0, first)
  const others = sorted.slice(always.length).reverse()
  const count = Math.max(1, Math.ceil(secondsOf(others) / (limits.seconds - secondsOf(always))))
  const turns = Array.from({ length: count }, (): { files: TestFile[]; seconds: number } => ({
    files: [],
    seconds: 0,
  }))
  for (const file of others) {
    const shortest = turns.reduce((least, turn) => (turn.seconds < least.seconds ? turn : least))
    shortest.files.push(file)
    shortest.seconds += file.seconds
  }
  return { always, turns: turns.map((turn) => turn.files) }
}

export const secondsOf = (files: readonly TestFile[]): number =>
  files.reduce((sum, { seconds }) => sum + seconds, 0)

/** The files whose turn it is at a commit, by the number of commits up to it, and those that it changed. */
export function chooseDue(plan: Plan, commits: number, changed: ReadonlySet<string>): readonly TestFile[] {
  return [
    ...plan.always,
    ...plan.turns.flatMap((turn, i) =>
      i === commits % plan.turns.length ? turn : turn.filter(({ name }) => changed.has(name)),
    ),
  ]
}

const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' })

export const countCommits = (): number => Number.parseInt(git('rev-list', '--count', 'HEAD'), 10)

export function listChanged(): ReadonlySet<string> {
  return new Set(git('diff-tree', '--no-commit-id', '--name-only', '-r', '-m', '--root', 'HEAD').split('\n'))
}

/**
 * Whether it is the turn of this part of a test file, the first being 0: of a long file, the gate runs one of so many
 * parts. `fileTurns` says how many turns the files have, so parts are counted in runs of their file.
 */
export function isTurn(place: number, parts: number): boolean {
  if (!isInGate()) return true
  return isPartDue(place, parts, countCommits(), Number.parseInt(process.env.FARTHING_TEST_TURNS ?? '1', 10))
}

export function isPartDue(place: number, parts: number, commits: number, fileTurns: number): boolean {
  return (Math.floor(commits / fileTurns) + place) % parts === 0
}
