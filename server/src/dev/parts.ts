import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Context } from '../context.ts'
import { serve, work } from '../processes.ts'
import { offerTestWallet } from './test-wallet.ts'

/**
 * `serve` and `work` as children of `dev`. One that ends although nobody asked it to is started again, as a deployment
 * would do it: that is what makes it worth killing. One that never came up ends `dev`.
 */
type Part = 'serve' | 'work'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
/** Of pino's levels: what a developer should see without looking into the log. */
const errorLevel = 50

export function isPart(name: string | undefined): name is Part {
  return name === 'serve' || name === 'work'
}

/** What such a child runs: the command of that name, and on its pages the test wallet. */
export async function runPart(ctx: Context, name: Part): Promise<void> {
  // Its input is a pipe from dev, which closes when dev is gone, however it went.
  process.stdin.once('end', () => process.kill(process.pid, 'SIGTERM')).resume()
  await (name === 'serve' ? serve(ctx, (app) => offerTestWallet(app, ctx)) : work(ctx))
  process.stdin.destroy()
}

/** Starts a part and keeps it running. Returns what stops it. */
export async function startPart(options: {
  readonly name: Part
  readonly folder: string
  readonly settings: Readonly<Record<string, string>>
  readonly say: (text: string) => void
  readonly fail: (error: Error) => void
}): Promise<() => Promise<void>> {
  const { name, folder, settings, say, fail } = options
  const pidFile = join(folder, `${name}.pid`)
  const log = createWriteStream(join(folder, `${name}.log`))
  let child: ChildProcess
  let isStopping = false

  const start = async () => {
    // Not in our process group: Ctrl-C is for us, and we stop it in its turn.
    const own = spawn(process.execPath, [main, 'dev', name], { env: settings, detached: true })
    child = own
    await writeFile(pidFile, `${own.pid}\n`)
    own.stderr.on('data', (chunk) => log.write(chunk))
    await new Promise<void>((resolve, reject) => {
      createInterface({ input: own.stdout }).on('line', (line) => {
        log.write(`${line}\n`)
        const { level, msg } = parseLine(line)
        if (msg === 'listening' || msg === 'working') resolve()
        if (level >= errorLevel) say(`${name}: ${msg} (.dev/${name}.log)`)
      })
      own.once('exit', (code, signal) => {
        reject(new Error(`${name} ended with ${signal ?? code} before it was up. See ${folder}/${name}.log.`))
        if (!isStopping) again(signal ?? `status ${code}`)
      })
    })
  }
  let isUp = false
  const again = (how: string) => {
    if (!isUp) return
    isUp = false
    say(`${name} ended with ${how}. Starting it again …`)
    start().then(() => {
      isUp = true
      say(`${name} is back, as process ${child.pid}.`)
    }, fail)
  }
  await start()
  isUp = true
  return async () => {
    isStopping = true
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    await rm(pidFile, { force: true })
    log.end()
  }
}

function parseLine(line: string): { level: number; msg: string } {
  try {
    const { level, msg } = JSON.parse(line)
    return { level, msg }
  } catch {
    return { level: 0, msg: line }
  }
}
