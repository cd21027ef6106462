import { execFile } from 'node:child_process'
import { lookup } from 'node:dns/promises'
import { mkdir, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { promisify } from 'node:util'
import { isNodeError } from '../../chains/rpc.ts'
import { readConfig } from '../../config/read.ts'
import type { Context } from '../../context.ts'
import { openLog } from '../../log.ts'
import { listConnected, openRails } from '../../payments/rails.ts'
import { createKeyFile } from '../../secrets/key-file.ts'
import { createSettler } from '../create-settler.ts'
import { type Options, UsageError } from '../usage.ts'
import { type Answers, collectAnswers } from './answers.ts'
import { drawFiles } from './files.ts'

/**
 * `setup` turns a few answers into a folder that holds a whole deployment, to be read before it is applied. It changes
 * nothing else and, unlike install.sh in the folder, needs no root. Returns the text to print.
 */
export async function setupCommand(ctx: Context, options: Options): Promise<string> {
  const folder = resolve(typeof options.out === 'string' ? options.out : 'farthing-setup')
  const terminal = process.stdin.isTTY
    ? createInterface({ input: process.stdin, output: process.stdout })
    : null
  const answers = await collectAnswers(options, {
    ask: terminal && ((question) => terminal.question(question)),
    hasAddress: (host) =>
      lookup(host).then(
        () => true,
        () => false,
      ),
  })
  terminal?.close()
  const checks = await checkMachine(ctx, answers)
  const report = checks.map(({ what, says, isWrong }) => `${isWrong ? 'WRONG ' : 'ok    '} ${what}: ${says}`)
  if (checks.some(({ isWrong }) => isWrong))
    throw new UsageError(
      `${report.join('\n')}\nNothing was written. Correct what is wrong, then run setup again.`,
    )
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      error.code === 'EEXIST'
        ? `${folder} exists already, perhaps with keys in it. Choose another: --out FOLDER`
        : `${folder} cannot be made: ${error.message}.`,
    )
  })
  for (const { name, text, isSecret } of drawFiles(answers)) {
    const file = join(folder, name)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text, { mode: isSecret ? 0o600 : 0o644 })
  }
  await createKeyFile(join(folder, 'secrets.keys'))
  const settler = await createSettler(answers.network, join(folder, 'settler.keys'))
  if ('refusal' in settler) throw new UsageError(settler.refusal)
  const [, address = ''] = /^Settler (\S+)/.exec(settler.says) ?? []
  return [...report, '', ...describeNext(folder, answers, address)].join('\n')
}

function describeNext(folder: string, { network, host }: Answers, settler: string): string[] {
  return [
    `Everything is in ${folder}. Read install.sh, then run it as root:`,
    `  sh ${folder}/install.sh`,
    `Send some ${network.nativeCurrency.symbol} on ${network.name} to the settler, which pays for settlements:`,
    `  ${settler}`,
    'Then, as root:',
    `  farthing-admin settler deploy ${network.id}`,
    '  farthing-admin doctor',
    `When doctor says ok everywhere, https://${host} takes payments. Keep the key in ${folder}/store.txt, back up /etc/farthing, and delete ${folder}.`,
  ]
}

/** The ports that the units in ops/systemd listen on, on loopback. */
const ports = [8402, 8404, 18402, 18404, 19403, 28402, 28404]
const databasePort = 5432
const databaseVersionMin = 15
const connectTimeoutMs = 2_000

type Check = { readonly what: string; readonly says: string; readonly isWrong: boolean }

/** What this machine and the nodes say. Nothing is changed. */
async function checkMachine(ctx: Context, answers: Answers): Promise<Check[]> {
  return [await checkDatabase(), await checkPorts(), ...(await checkNodes(ctx, answers))]
}

async function checkDatabase(): Promise<Check> {
  const what = 'PostgreSQL'
  const version = await promisify(execFile)('psql', ['--version']).then(
    ({ stdout }) => /(\d+)\.\d+/.exec(stdout),
    () => null,
  )
  if (!version) return { what, says: 'is not installed here: apt-get install postgresql', isWrong: true }
  const [text, major = ''] = version
  if (Number.parseInt(major, 10) < databaseVersionMin)
    return { what, says: `${text} is too old: use ${databaseVersionMin} or newer`, isWrong: true }
  const isUp = await answers(databasePort)
  const down = `does not listen on port ${databasePort}: systemctl start postgresql`
  return { what, says: isUp ? `${text} answers on port ${databasePort}` : down, isWrong: !isUp }
}

async function checkPorts(): Promise<Check> {
  const taken: number[] = []
  for (const port of ports) if (!(await isFree(port))) taken.push(port)
  const what = 'ports'
  if (taken.length === 0) return { what, says: `${ports.join(', ')} are free`, isWrong: false }
  const says = `${taken.join(', ')} taken: stop what runs there. If it is a deployment that is set up already, edit /etc/farthing instead`
  return { what, says, isWrong: true }
}

/** Each node alone, so that the one that is wrong can be named. */
async function checkNodes(ctx: Context, { network, nodes }: Answers): Promise<Check[]> {
  const checks = nodes.split(',').map(async (node): Promise<Check> => {
    const what = node.split('=')[0] ?? ''
    const config = readConfig({
      DATABASE_URL: 'postgres://none',
      BASE_URL: 'http://none',
      NETWORKS: network.id,
      [`${network.id}_RPC_URLS`]: node,
    })
    try {
      // The answer says what is wrong, so the log need not.
      const [rail] = listConnected(openRails({ ...ctx, config, log: openLog('silent') }))
      const answering = await rail?.countAnswering()
      if (!rail || answering !== 1)
        return { what, says: `does not answer for ${network.name}`, isWrong: true }
      // A missing batcher is no mistake: settler deploy puts it there.
      const [difference] = (await rail.findDifferences()).filter(({ fix }) => !/settler deploy/.test(fix))
      const [trouble] = (await rail.probe()).flatMap(({ troubles }) => troubles)
      const mistake = difference?.says ?? (trouble && `${trouble.says}: use one ${trouble.wanted}`)
      return { what, says: mistake ?? `is a node of ${network.name}`, isWrong: mistake !== undefined }
    } catch (error) {
      if (!isNodeError(error)) throw error
      return { what, says: error.message, isWrong: true }
    }
  })
  return await Promise.all(checks)
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  return await new Promise((resolve) => {
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}

async function answers(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1', timeout: connectTimeoutMs })
  return await new Promise<boolean>((resolve) => {
    for (const event of ['error', 'timeout'] as const) socket.once(event, () => resolve(false))
    socket.once('connect', () => resolve(true))
  }).finally(() => socket.destroy())
}
