import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePort } from '../database/database.ts'
import { packServer } from './program.ts'

const execute = promisify(execFile)
const here = new URL('../..', import.meta.url).pathname
const skewModule = new URL('skew.ts', import.meta.url).pathname

/** Times 50 ms: a start takes seconds on a busy machine. */
const readyTriesMax = 600

const restartMs = 500

type Command = 'serve' | 'work'

/** One member of the fleet: a process that is restarted whenever it has exited. */
export type Member = {
  readonly name: string
  readonly command: Command
  readonly port: number
  child: ChildProcess | null
  /** Whether a fault is using it: other faults leave it alone until then. */
  isBusy: boolean
  /** Whether it has logged that it is up. */
  isReady: boolean
  /** Whether the harness is stopping it. */
  isEnding: boolean
}

function urlAs(command: Command, url: string): string {
  return Object.assign(new URL(url), { username: `farthing_${command}` }).href
}

/** The names of all places where the server can be told to kill itself, read from its source text. */
export function readCrashPoints(): string[] {
  const source = readFileSync(join(here, 'server/src/crash.ts'), 'utf8')
  const list = source.slice(source.indexOf('['), source.indexOf(']'))
  return [...list.matchAll(/'([a-z-]+)'/g)].map(([, name]) => name ?? '')
}

/** The server as it is started: its main file and the compile cache. */
export type Program = { readonly main: string; readonly cache: string }

/** Bundles the server once, for any number of fleets. */
export async function openProgram(folder: string): Promise<Program> {
  const cache = join(folder, 'compiled')
  mkdirSync(cache)
  return { main: await packServer(here, join(folder, 'program'), cache), cache }
}

/** The number of `serve` processes, and also of `work` processes. */
export async function openFleet(
  folder: string,
  { main, cache }: Program,
  environment: Readonly<Record<string, string>>,
  twins: number,
) {
  const members: Member[] = []
  for (const command of ['serve', 'work'] as const)
    for (let i = 1; i <= twins; i++)
      members.push({
        name: `${command}-${i}`,
        command,
        port: await freePort(),
        child: null,
        isBusy: false,
        isReady: false,
        isEnding: false,
      })

  const falls: string[] = []
  /** The errors of the processes' clocks, in seconds. One of them is zero. */
  const skews = [0]
  const start = (member: Member, options: { crashAt?: string; skewSeconds?: number; root?: string } = {}) => {
    const log = createWriteStream(join(folder, `${member.name}.log`), { flags: 'a' })
    const { SETTLER_KEYS_FILE = '', ...common } = environment
    const program = options.root ? join(options.root, 'server/src/main.ts') : main
    const skew = options.skewSeconds ? ['--import', skewModule] : []
    skews.push(options.skewSeconds ?? 0)
    member.child = spawn(process.execPath, [...skew, program, member.command], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH ?? '',
        NODE_COMPILE_CACHE: cache,
        ...common,
        // An older release knows no roles: it uses one login for everything.
        ...(!options.root && { DATABASE_URL: urlAs(member.command, common.DATABASE_URL ?? '') }),
        ...(member.command === 'work' && { SETTLER_KEYS_FILE }),
        PORT: `${member.port}`,
        ...(options.crashAt && { CRASH_AT: options.crashAt }),
        ...(options.skewSeconds && { SKEW_SECONDS: `${options.skewSeconds}` }),
      },
    })
    const { child } = member
    member.isReady = false
    member.isEnding = false
    child.stdout?.on('data', (chunk) => {
      if (member.child === child && /"(listening|working)"/.test(`${chunk}`)) member.isReady = true
    })
    child.once('exit', (_, signal) => {
      if (member.child !== child) return
      const isMeant = member.isEnding || (options.crashAt !== undefined && signal === 'SIGKILL')
      // A process may exit if it cannot start; once it is up, it must not, whatever happens.
      if (member.isReady && !isMeant) falls.push(member.name)
      member.isReady = false
      // Restarts it like a supervisor. A fault that killed or armed a process restarts it itself.
      if (!isMeant && options.crashAt === undefined)
        setTimeout(() => {
          if (member.child === child && !member.isEnding)
            start(member, options.root ? { root: options.root } : {})
        }, restartMs)
    })
    member.child.stdout?.pipe(log, { end: false })
    member.child.stderr?.pipe(log, { end: false })
  }

  const isAlive = ({ child }: Member) =>
    child !== null && child.exitCode === null && child.signalCode === null

  const untilEnded = async ({ child }: Member, boundMs: number): Promise<boolean> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return true
    return await Promise.race([once(child, 'exit').then(() => true), wait(boundMs, false)])
  }

  /** Returns false if the process died or took too long before it was up. */
  const untilReady = async (member: Member): Promise<boolean> => {
    for (let tries = 0; tries < readyTriesMax && !member.isReady && isAlive(member); tries++) await wait(50)
    return member.isReady
  }

  const end = async (member: Member, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> => {
    member.isEnding = true
    member.child?.kill('SIGCONT')
    member.child?.kill(signal)
    if (!(await untilEnded(member, 40_000))) throw new Error(`${member.name} does not exit`)
  }

  return {
    /** How far two clocks may have been apart so far. */
    clocksDifferMs: () => (Math.max(...skews) - Math.min(...skews)) * 1_000,
    members,
    /** Members that exited on their own while they were up. */
    falls,
    environment,
    start,
    untilEnded,
    untilReady,
    end,
    isAlive,
    /** Runs an operator's command and returns its output. */
    run: async (...args: string[]): Promise<string> => {
      const env = { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: cache, ...environment }
      return (await execute(process.execPath, [main, ...args], { env })).stdout
    },
  }
}
