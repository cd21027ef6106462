import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { buildTestWallet } from '@farthing/page/test-wallet'
import type { FastifyInstance } from 'fastify'
import { type Additions, serve, work } from '../commands/processes.ts'
import type { Context } from '../context.ts'
import { pagePathOf } from '../http/api/pay.ts'
import { networks } from '../networks.ts'
import { chainIdOf, testPayer } from './chain.ts'
import { offerReceivers } from './demo.ts'
import { offerSignIn } from './sign-in.ts'

/**
 * `serve` and `work` as child processes of `dev`. One that exits unexpectedly is restarted, as in a deployment, so
 * that you can kill one and watch. If one fails to start, `dev` stops.
 */
type Part = 'serve' | 'work'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
/** The pino level from which a developer should see lines without opening the log. */
const errorLevel = 50

/**
 * A child runs the command of its name, with the test wallet, webhook receivers and sign-in by link that only `dev`
 * has.
 */
export async function runPart(ctx: Context, name: Part): Promise<void> {
  // Its input is a pipe from dev, which closes when dev is gone, however it ended.
  process.stdin.once('end', () => process.kill(process.pid, 'SIGTERM')).resume()
  await (name === 'serve' ? serve(ctx, additions(ctx)) : work(ctx))
  process.stdin.destroy()
}

function additions(ctx: Context): Additions {
  return {
    toApp(app) {
      offerTestWallet(app, ctx)
      offerReceivers(app)
    },
    toConsole: offerSignIn,
  }
}

type PartOptions = {
  readonly name: Part
  readonly folder: string
  readonly settings: Readonly<Record<string, string>>
  readonly say: (text: string) => void
  readonly fail: (error: Error) => void
}

/** Starts a part and keeps it running. Returns a function that stops it. */
export async function startPart(options: PartOptions): Promise<() => Promise<void>> {
  const { name, folder, say, fail } = options
  const log = createWriteStream(join(folder, `${name}.log`))
  let isStopping = false
  let child = await start(options, log)

  const keep = async () => {
    for (;;) {
      const [code, signal] = await once(child, 'exit')
      if (isStopping) return
      say(`${name} exited with ${signal ?? `status ${code}`}. Restarting it …`)
      child = await start(options, log)
      if (isStopping) child.kill('SIGTERM')
      say(`${name} is back as process ${child.pid}.`)
    }
  }
  const kept = keep().catch(fail)
  return async () => {
    isStopping = true
    child.kill('SIGTERM')
    await kept
    await rm(pidFile(folder, name), { force: true })
    log.end()
  }
}

/** Resolves when the child has logged that it is up. */
async function start({ name, folder, settings, say }: PartOptions, log: WriteStream): Promise<ChildProcess> {
  // Not in our process group: Ctrl-C is for us, and we stop the child in order.
  const child = spawn(process.execPath, [main, 'dev', name], { env: settings, detached: true })
  await writeFile(pidFile(folder, name), `${child.pid}\n`)
  child.stderr.on('data', (chunk) => log.write(chunk))
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      log.write(`${line}\n`)
      const { level, msg } = parseLine(line)
      if (msg === 'listening' || msg === 'working') resolve()
      if (level >= errorLevel) say(`${name}: ${msg} (see .dev/${name}.log)`)
    })
    child.once('exit', (code, signal) =>
      reject(new Error(`${name} exited with ${signal ?? code} before it was up. See ${folder}/${name}.log.`)),
    )
  })
  return child
}

function pidFile(folder: string, name: Part): string {
  return join(folder, `${name}.pid`)
}

function parseLine(line: string): { level: number; msg: string } {
  try {
    const { level, msg } = JSON.parse(line)
    return { level, msg }
  } catch {
    return { level: 0, msg: line }
  }
}

const path = '/dev/test-wallet.js'

/**
 * Adds the test wallet to every payment page, as an element inserted into the response. The page itself does not know
 * about it, so a deployment has nothing to leave switched on.
 */
function offerTestWallet(app: FastifyInstance, ctx: Context): void {
  const offered = networks.filter(({ id }) => ctx.config.networks.includes(id))
  const [network] = offered
  assert(
    offered.every(({ isLocal }) => isLocal),
    'the test wallet is for the local chain only',
  )
  assert(network?.family === 'EVM')
  const script = buildTestWallet(testPayer.key, chainIdOf(network))
  const integrity = `sha384-${createHash('sha384').update(script).digest('base64')}`
  const element = `<script type="module" src="${path}" integrity="${integrity}"></script>`
  app.get(path, (_request, reply) => reply.type('text/javascript; charset=utf-8').send(script))
  // The element can only be added to uncompressed text.
  app.addHook('onRequest', async (request) => void delete request.headers['accept-encoding'])
  app.addHook('onSend', async (request, reply, payload) => {
    const isPage = String(reply.getHeader('content-type')).startsWith('text/html')
    if (!isPage || !request.url.startsWith(`${pagePathOf(ctx)}/`) || typeof payload !== 'string')
      return payload
    return payload.replace('</head>', () => `${element}\n</head>`)
  })
}
