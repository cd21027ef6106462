/**
 * Plants known bugs in a copy of the repository, one at a time, and runs the test or fault run that must catch each:
 * `npm run chaos:planted`.
 *
 *   --some N     only N bugs, different ones for every commit, for CI
 *   --only A,B   only these
 *   --sound      plant nothing: the same tests must pass without the bugs
 *
 * The last line is JSON. The exit code is 1 unless every bug was caught, by name, within its budget.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { catalog, type Planted } from './planted/catalog.ts'

/** How long it may take to catch one bug on a busy machine: twice as long as a test waits for what never comes. */
const budgetMs = 480_000

const root = new URL('..', import.meta.url).pathname
const { values } = parseArgs({
  options: { some: { type: 'string' }, only: { type: 'string' }, sound: { type: 'boolean', default: false } },
})
const chosen = choose()
const scratch = mkdtempSync(join(tmpdir(), 'farthing-planted-'))
const missed: string[] = []
try {
  copyTo(scratch)
  for (const planted of chosen) {
    const patch = join(root, 'chaos/planted', `${planted.name}.patch`)
    const git = (...args: string[]) => execFileSync('git', ['apply', ...args, patch], { cwd: scratch })
    if (!values.sound) git()
    const startedAt = Date.now()
    const { isCaught, output } = failToCompile() ?? (await run(planted))
    if (!values.sound) git('-R')
    const seconds = Math.round((Date.now() - startedAt) / 1_000)
    const isRight = values.sound ? !isCaught : isCaught
    if (!isRight) missed.push(planted.name)
    const by = 'test' in planted ? planted.test : planted.invariant
    say(`${isRight ? (values.sound ? 'passes' : 'caught') : 'MISSED'}  ${planted.name} (${seconds} s): ${by}`)
    if (!isRight) say(output.split('\n').slice(-60).join('\n'))
  }
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
say(
  JSON.stringify({
    planted: chosen.length,
    caught: chosen.length - missed.length,
    missed,
    of: catalog.length,
  }),
)
process.exitCode = missed.length > 0 ? 1 : 0

/** --some rotates by the number of commits, so that the next commit gets different bugs. */
function choose(): readonly Planted[] {
  if (values.only) {
    const names = values.only.split(',')
    return catalog.filter(({ name }) => names.includes(name))
  }
  if (!values.some) return catalog
  const quick = catalog.filter(({ isSlow }) => !isSlow)
  const some = Number.parseInt(values.some, 10)
  const commits = execFileSync('git', ['rev-list', '--count', 'HEAD'], { cwd: root, encoding: 'utf8' })
  const first = Number.parseInt(commits, 10) * some
  return Array.from({ length: some }, (_, i) => quick[(first + i) % quick.length] as Planted)
}

/** Copies every file that git does not ignore. Dependencies are shared, except our own packages, which are copied. */
function copyTo(folder: string): void {
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  for (const file of files
    .split('\n')
    .filter((name) => name !== '' && (!name.startsWith('docs/') || name.startsWith('docs/api/')))) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  mkdirSync(join(folder, 'node_modules/@farthing'), { recursive: true })
  for (const name of readdirSync(join(root, 'node_modules')).filter((entry) => entry !== '@farthing'))
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  for (const name of readdirSync(join(root, 'node_modules/@farthing')))
    symlinkSync(join(folder, name), join(folder, 'node_modules/@farthing', name))
  // PostgreSQL runs as another user and has to read files of the tests.
  execFileSync('chmod', ['755', folder])
}

/** A bug that does not compile would be caught for the wrong reason. Unused names are allowed. */
function failToCompile(): { isCaught: false; output: string } | null {
  const tsc = join(root, 'node_modules/.bin/tsc')
  const args = ['-p', 'tsconfig.json', '--noUnusedLocals', 'false', '--noUnusedParameters', 'false']
  const { status, stdout } = spawnSync(tsc, args, { cwd: scratch, encoding: 'utf8' })
  return status === 0 ? null : { isCaught: false, output: `the patched code does not compile:\n${stdout}` }
}

async function run(planted: Planted): Promise<{ isCaught: boolean; output: string }> {
  const args =
    'test' in planted
      ? ['server/test/run.ts', planted.file, `--test-name-pattern=${escapePattern(planted.test)}`]
      : ['chaos/main.ts', ...planted.chaos]
  const child = spawn(process.execPath, args, {
    cwd: scratch,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    // The run's files are deleted together with the copy.
    env: { ...process.env, TMPDIR: scratch },
  })
  const bell = setTimeout(() => child.pid && process.kill(-child.pid, 'SIGKILL'), budgetMs)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk
    })
  const [code] = await once(child, 'close')
  clearTimeout(bell)
  const isNamed =
    'test' in planted
      ? output.split('\n').some((line) => line.includes('✖') && line.includes(planted.test))
      : new RegExp(`"broken":\\[[^\\]]*"${planted.invariant}"`).test(output)
  return { isCaught: code !== 0 && isNamed, output }
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
