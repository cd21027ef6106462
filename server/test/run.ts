/**
 * Runs the tests: `npm test`, or `npm test -- server/src/money.test.ts` for some of them. All files share one private
 * PostgreSQL. Each file clones its own database from a migrated template, so files can run in parallel. Files in `load/`
 * measure how much this machine does in a given time, so they run alone, one after another.
 *
 *   --long     those that take minutes, instead of the others
 *   --circle   those about payments on EVM chains, with Circle's own token on every local chain
 *   --edr      the central ones of those, with EDR instead of anvil as the chain
 *   --list     runs nothing, prints what would run
 *   --record   stores how long each file took, by which the gate divides them into turns
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../src/database/db.ts'
import { migrate } from '../src/database/migrate.ts'
import { startCluster } from '../src/dev/postgres.ts'
import { writeCircleToken } from './support/chain/circle.ts'
import {
  chooseDue,
  countCommits,
  filesAtOnce,
  isInGate,
  isLoad,
  listChanged,
  perCommitOnCircle,
  planTurns,
  readTimes,
  secondsOf,
  timed,
} from './support/turns.ts'

const root = new URL('../../', import.meta.url).pathname
const asked = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
const ours = ['--long', '--circle', '--edr', '--list', '--record']
const flags = process.argv
  .slice(2)
  .filter((argument) => argument.startsWith('--') && !ours.includes(argument))
/** Unless another one is asked for: what node:test prints by default, and after it where the time went. */
const reporters = flags.some((flag) => flag.startsWith('--test-reporter'))
  ? []
  : ['spec', new URL('support/slowest.ts', import.meta.url).pathname].flatMap((reporter) => [
      `--test-reporter=${reporter}`,
      '--test-reporter-destination=stdout',
    ])
/** Kills, reorganisations and attacks: minutes each, so they have their own command, `npm run test:long`. */
const isLong = process.argv.includes('--long')
const isList = process.argv.includes('--list')
const find = (pattern: string, excluded: readonly string[] = []) =>
  globSync(pattern, { cwd: root, exclude: ['**/node_modules/**', ...excluded] }).sort()
const longFiles = find('{server,sdk}/**/payments/{adversity,crash}/**/*.test.ts')
/** Those whose payments the token decides about. */
const circleFiles = find(
  'server/test/{chains/evm/{batcher,follower,ranges,token,token-signatures},checkouts/pay*,refunds/*,payments/{*,{adversity,crash,credits,evm,settlers,transfers}/**/*}}.test.ts',
  ['**/svm-*'],
)
const isCircle = process.argv.includes('--circle')
const edrFiles = [...circleFiles, ...find('server/test/chains/evm/token-gas.test.ts')].filter(
  (name) => !/payments\/(adversity|crash)\//.test(name),
)
const isEdr = process.argv.includes('--edr')
const shortFiles = find('{server,sdk,cli,mcp,examples,chaos}/**/*.test.ts', [
  '**/payments/{adversity,crash}/**',
])

const times = readTimes()
const plan = isCircle
  ? planTurns(
      circleFiles.map((name) => timed(name, times)),
      perCommitOnCircle,
    )
  : planTurns([...shortFiles, ...longFiles].map((name) => timed(name, times)))
const files = choose()
if (isList) process.exit()

/** Those asked for, or all; in the gate those whose turn it is, which are then printed. */
function choose(): readonly string[] {
  if (asked.length > 0) return asked
  const mine = isCircle ? circleFiles : isEdr ? edrFiles : isLong ? longFiles : shortFiles
  if (!isInGate() || isEdr) {
    if (isList) print(mine)
    return mine
  }
  const commits = countCommits()
  // What a commit changed runs with it on our own token; on Circle's, in its turn.
  const changed = isCircle ? new Set<string>() : listChanged()
  const due = chooseDue(plan, commits, changed).filter(({ name }) => mine.includes(name))
  const turn = `turn ${(commits % plan.turns.length) + 1} of ${plan.turns.length}`
  const minutes = (secondsOf(due) / 60).toFixed(1)
  const names = due.map(({ name }) => name).sort()
  print([`${turn}: ${due.length} of ${mine.length} files, about ${minutes} minutes`, ...names])
  return names
}

function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`)
}

/**
 * The application and the workers of all tests have the rights of their roles. What PostgreSQL refused them is a missing
 * grant, even where the test did not notice; refusals that a test provokes have its own application name.
 */
async function findRefusals(): Promise<string[]> {
  const log = await readFile(join(folder, 'data/server.log'), 'utf8')
  const refusals = log.matchAll(
    /^farthing_\w+\/(?!test-roles).*(?:permission denied|may not|row-level security).*\n(?:.*STATEMENT:.*\n(?:\t.*\n)*)?/gm,
  )
  return [...new Set(Array.from(refusals, ([text]) => text))]
}

/** Whoever ends this process ends the tests with it, and what they use is put away as after any other run. */
let isEnded = false
let tests: ChildProcess | undefined
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
  process.on(signal, () => {
    isEnded = true
    tests?.kill('SIGTERM')
  })

const folder = await mkdtemp(join(tmpdir(), 'farthing-test-'))
const cluster = await startCluster(folder, [
  'max_connections=600',
  'shared_buffers=256MB',
  'cluster_name=farthing_test',
  // Which role was refused what: see findRefusals.
  'log_line_prefix=%u/%a/',
]).catch(async (error) => {
  await rm(folder, { recursive: true, force: true })
  throw error
})
let status = 1
try {
  const admin = openDatabase({ url: cluster.url('postgres'), connections: 4, name: 'test-setup' })
  await admin.query('create database template_farthing')
  await admin.close()
  const template = openDatabase({ url: cluster.url('template_farthing'), connections: 4, name: 'test-setup' })
  await migrate(template)
  // The cluster trusts everybody who connects by loopback, so they need no passwords.
  for (const role of ['owner', 'serve', 'work', 'console', 'operator', 'audit'])
    await template.query(`alter role farthing_${role} login`)
  await template.close()
  const token = join(folder, 'circle.json')
  if (isCircle) await writeCircleToken(token)
  const run = async (some: readonly string[], concurrency: number) => {
    if (some.length === 0) return 0
    if (isEnded) return 1
    const child = spawn(
      process.execPath,
      ['--test', `--test-concurrency=${concurrency}`, ...reporters, ...flags, ...some],
      {
        cwd: root,
        stdio: 'inherit',
        env: {
          ...process.env,
          FARTHING_TEST_CLUSTER: cluster.url(''),
          ...(isCircle && { TOKEN_ARTIFACT: token }),
          ...(isEdr && { TEST_CHAIN: 'edr' }),
          // A third of the processor time of a test file's start is compiling what others have compiled before it.
          NODE_COMPILE_CACHE: join(folder, 'compile-cache'),
          FARTHING_TEST_TURNS: `${plan.turns.length}`,
          ...(process.argv.includes('--record') && { FARTHING_TEST_RECORD: '1' }),
        },
      },
    )
    tests = child
    return await new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? 1)))
  }
  status =
    (await run(
      files.filter((file) => !isLoad(file)),
      filesAtOnce,
    )) || (await run(files.filter(isLoad), 1))
} finally {
  await cluster.stop()
  const refusals = await findRefusals()
  if (refusals.length > 0) {
    process.stderr.write(
      `PostgreSQL refused what a role needs (server/rights/grants.sql):\n${refusals.join('')}`,
    )
    status = 1
  }
  await rm(folder, { recursive: true, force: true })
}
process.exit(status)
