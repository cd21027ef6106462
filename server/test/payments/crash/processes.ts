import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { CrashPoint } from '../../../src/crash.ts'
import { urlAs } from '../../support/database.ts'
import { patienceMs } from '../../support/patience.ts'
import { secretsKeyFile } from '../../support/secrets-key.ts'

const main = new URL('../../../src/main.ts', import.meta.url).pathname

/** Half of a start is compilation, and a killed process saves no cache, so one clean run fills the cache first. */
const compileCache = await mkdtemp(join(tmpdir(), 'farthing-compiled-'))
after(() => rm(compileCache, { recursive: true, force: true }))
execFileSync(process.execPath, [main, 'help'], { env: { NODE_COMPILE_CACHE: compileCache } })

/** Repeats `look` until it finds something, and returns that. */
export async function until<Result>(
  what: string,
  look: () => Promise<Result | null | undefined | false>,
  boundMs = patienceMs,
): Promise<Result> {
  const giveUpAt = Date.now() + boundMs
  let trouble = ''
  for (;;) {
    const seen = await look().catch((error) => {
      trouble = `: ${error instanceof Error ? error.message : error}`
      return null
    })
    if (seen) return seen
    assert(Date.now() < giveUpAt, `not within ${boundMs / 1_000} s: ${what}${trouble}`)
    await wait(50)
  }
}

export type Program = {
  readonly child: ChildProcess
  readonly output: () => string
}

function roleOf(command: string | undefined): 'serve' | 'work' | 'operator' {
  return command === 'serve' || command === 'work' ? command : 'operator'
}

/** Starts main.ts with a command. It is killed when the test that started it ends. */
export function startProgram(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  crashAt?: CrashPoint,
): Program {
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH ?? '',
      NODE_COMPILE_CACHE: compileCache,
      SECRETS_KEY_FILE: secretsKeyFile,
      SETTLER_ETH_PER_DAY: '',
      SETTLER_SOL_PER_DAY: '',
      ...environment,
      DATABASE_URL: urlAs(roleOf(args[0]), environment.DATABASE_URL ?? ''),
      ...(crashAt && { CRASH_AT: crashAt }),
    },
  })
  after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      output += chunk
    })
  }
  return { child, output: () => output }
}

export function isAlive({ child }: Program): boolean {
  return child.exitCode === null && child.signalCode === null
}

export async function untilEnded(program: Program, boundMs = patienceMs): Promise<void> {
  if (!isAlive(program)) return
  const timeout = AbortSignal.timeout(boundMs)
  await once(program.child, 'exit', { signal: timeout }).catch(() => {
    assert.fail(`the process did not exit within ${boundMs / 1_000} s:\n${program.output().slice(-4_000)}`)
  })
}

/** Waits until a program has killed itself at the armed point; any other exit fails the test. */
export async function untilCrashed(program: Program, point: CrashPoint): Promise<void> {
  await untilEnded(program)
  assert.equal(
    program.child.signalCode,
    'SIGKILL',
    `${point} was not reached: the process exited with ${program.child.exitCode}\n${program.output().slice(-4_000)}`,
  )
}

export async function endProgram(program: Program, signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
  if (isAlive(program)) {
    program.child.kill(signal)
    await untilEnded(program)
  }
  return program.child.exitCode
}

/** Runs a command until it exits. */
export async function runProgram(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  crashAt?: CrashPoint,
): Promise<Program> {
  const program = startProgram(args, environment, crashAt)
  await untilEnded(program)
  if (!crashAt) assert.equal(program.child.exitCode, 0, program.output())
  return program
}
