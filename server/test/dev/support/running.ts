import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { atEnd } from '../../support/at-end.ts'
import { freePort } from '../../support/free-port.ts'

const main = new URL('../../../src/main.ts', import.meta.url).pathname

/** A folder that `dev` has never run in. */
export async function freshFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-dev-'))
  // If we are root, PostgreSQL runs as another user, who must be able to enter the folder.
  await chmod(folder, 0o755)
  atEnd(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Starts `dev` in a folder and waits until it has printed its screen. `stop` is Ctrl-C. */
export async function startDev(folder: string, environment: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [main, 'dev'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH ?? '', PORT: String(await freePort()), ...environment },
  })
  const stop = async (): Promise<number | null> => {
    if (!isOver(child)) {
      child.kill('SIGINT')
      await once(child, 'exit')
    }
    return child.exitCode
  }
  atEnd(stop)
  let output = ''
  await new Promise<void>((resolve, reject) => {
    const hear = (chunk: unknown) => {
      output += chunk
      if (output.includes('Ctrl-C stops everything')) resolve()
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.once('exit', (code) => reject(new Error(`dev exited with ${code}:\n${output}`)))
  })
  const settings = parseEnv(await readFile(join(folder, '.dev/env'), 'utf8')) as Record<string, string>
  const { FARTHING_URL: url = '', FARTHING_API_KEY: key = '', CHECKOUT: checkoutUrl = '' } = settings
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const call = async (path: string, body?: object) => {
    const init = body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers }
    return (await fetch(`${url}/api/v1${path}`, init)).json() as Promise<Record<string, unknown>>
  }
  return { child, url, key, settings, checkoutUrl, stop, call, output: () => output }
}

function isOver({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

/** Processes that run in a folder or below it. */
export function processesIn(folder: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)
    } catch {
      // It exited in the meantime.
      return false
    }
  })
}
