/**
 * Runs the tests: `npm test`, or `npm test -- server/src/money.test.ts` for some of them. All files share one private
 * PostgreSQL. Each file clones its own database from a migrated template, so files can run in parallel. Files in `load/`
 * measure how much this machine does in a given time, so they run alone, one after another.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../src/database/db.ts'
import { migrate } from '../src/database/migrate.ts'
import { startCluster } from '../src/dev/postgres.ts'
import { isTurn } from './support/turn.ts'

const root = new URL('../../', import.meta.url).pathname
const asked = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
const flags = process.argv.slice(2).filter((argument) => argument.startsWith('--') && argument !== '--long')
/** Unless another one is asked for: what node:test prints by default, and after it where the time went. */
const reporters = flags.some((flag) => flag.startsWith('--test-reporter'))
  ? []
  : ['spec', new URL('support/slowest.ts', import.meta.url).pathname].flatMap((reporter) => [
      `--test-reporter=${reporter}`,
      '--test-reporter-destination=stdout',
    ])
const isLong = process.argv.includes('--long')
/** Kills, reorganisations and attacks: minutes each, so they have their own command, `npm run test:long`. */
const long = '{server,sdk}/**/payments/{adversity,crash}/**/*.test.ts'
const exclude = [
  '**/node_modules/**',
  ...(isLong ? [] : ['**/payments/adversity/**', '**/payments/crash/**']),
]
const files =
  asked.length > 0
    ? asked
    : globSync(isLong ? long : '{server,sdk,cli,mcp,examples,chaos}/**/*.test.ts', { cwd: root, exclude })

/** One more than the cores of the smallest machine: many tests wait for a block, a time-out or a browser. */
const filesAtOnce = 3

/** Half a minute or more each: in the gate they take turns. */
const slow = [
  '/test/containers.test.ts',
  '/test/release.test.ts',
  '/test/dashboard.test.ts',
  '/page/hostile.test.ts',
  '/docs/looks.test.ts',
  '/evm/matrix.test.ts',
  '/evm/idle-calls.test.ts',
  '/test/mcp.test.ts',
  '/crash/crash-points.test.ts',
  '/crash/svm-crash-points.test.ts',
  '/crash/refund-crash-points.test.ts',
  '/adversity/liars.test.ts',
  '/svm/liars.test.ts',
  '/dev/dev.test.ts',
  '/webhooks/receivers.test.ts',
  '/console/hostile.test.ts',
  '/http/raw-http.test.ts',
  '/http/fuzz.test.ts',
  '/webhooks/signature.test.ts',
  '/commands/operator.test.ts',
  '/directory/crash.test.ts',
  '/docs/run.test.ts',
  '/page/journeys.test.ts',
  '/page/solana.test.ts',
  '/page/no-script.test.ts',
  '/page/ways.test.ts',
  '/crash/reorgs.test.ts',
  '/crash/rpc-faults.test.ts',
  '/crash/takeover.test.ts',
  '/console/every-screen.test.ts',
  '/http/hostile-values.test.ts',
  '/console/hostile-values.test.ts',
  '/console/attacks.test.ts',
]
const slowTurns = 3

/** Load tests have the machine to themselves, one after the other. */
const loadTurns = 2

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
  for (const role of ['owner', 'serve', 'work', 'console', 'operator'])
    await template.query(`alter role farthing_${role} login`)
  await template.close()
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
          // A third of the processor time of a test file's start is compiling what others have compiled before it.
          NODE_COMPILE_CACHE: join(folder, 'compile-cache'),
        },
      },
    )
    tests = child
    return await new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? 1)))
  }
  const isLoad = (file: string) => file.includes('/load/')
  const isDue = (file: string) => {
    const place = slow.findIndex((end) => file.endsWith(end))
    return asked.length > 0 || place === -1 || isTurn(place, slowTurns)
  }
  status =
    (await run(files.filter((file) => !isLoad(file) && isDue(file)).sort(), filesAtOnce)) ||
    (await run(
      files
        .filter(isLoad)
        .sort()
        .filter((_, place) => asked.length > 0 || isTurn(place, loadTurns)),
      1,
    ))
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
