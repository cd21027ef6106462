/**
 * Somebody who follows a page of the docs: `npm run dev` in one terminal and, once it has printed its screen, the page's
 * commands in another, both in a clean clone. `follow.ts` starts it in a network of its own. Prints what it saw as JSON.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { patienceMs } from '../../../support/patience.ts'
import { until } from '../../../support/until.ts'
import type { Sight } from './follow.ts'

/** The folder to be in, and a file with the commands. */
const [clone = '', script = ''] = process.argv.slice(2)
const readLog = (name: 'serve' | 'work') => readFile(join(clone, `.dev/${name}.log`), 'utf8')

const dev = spawn('npm', ['run', 'dev'], {
  cwd: clone,
  stdio: ['ignore', 'pipe', 'pipe'],
  // A process group of its own, which gets Ctrl-C as from a terminal: npm would not pass it on.
  detached: true,
})
const exited = once(dev, 'exit')
let screen = ''
for (const stream of [dev.stdout, dev.stderr])
  stream.on('data', (chunk) => {
    screen += chunk
  })

try {
  await untilReady()
  const [served, worked] = [(await readLog('serve')).length, (await readLog('work')).length]
  const typed = await type(script)
  endGroup(dev, 'SIGINT')
  await exited
  // Only now, because `dev` may write its last lines while it stops.
  const log = (await readLog('serve')).slice(served) + (await readLog('work')).slice(worked)
  process.stdout.write(JSON.stringify({ ...typed, log } satisfies Sight))
} catch (error) {
  process.stderr.write(`${error}\n${screen}`)
  process.exitCode = 1
  endGroup(dev, 'SIGINT')
}

/** Until `dev` has printed its screen, and has made and paid its own orders of today: what is requested then is the page's. */
async function untilReady(): Promise<void> {
  await until('dev has made its orders', async () => {
    assert(dev.exitCode === null, 'dev exited.')
    assert(!screen.includes('Not all of today'), 'dev could not make its orders.')
    return (
      screen.includes('Ctrl-C stops everything') &&
      /"route":"\/api\/v1\/checkouts\/:\w+\/cancel","status":200/.test(await readLog('serve'))
    )
  })
}

/** Runs the page's commands in a second terminal. */
async function type(commands: string): Promise<{ readonly output: string; readonly errors: string }> {
  // In its own process group, so that what a block leaves running ends with it. A block that hangs must not hang the tests.
  const shell = spawn('bash', [commands], { cwd: clone, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const timer = setTimeout(() => endGroup(shell, 'SIGKILL'), patienceMs)
  const said = Promise.all([text(shell.stdout), text(shell.stderr)])
  await once(shell, 'exit')
  clearTimeout(timer)
  endGroup(shell, 'SIGKILL')
  const [output, errors] = await said
  return { output, errors }
}

function endGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch (error) {
    // It has exited by itself.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
