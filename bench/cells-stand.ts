/**
 * Whole cells side by side on one chain. Each has its own PostgreSQL, `serve` and `work` processes, settler and store.
 * One HAProxy, configured as ops/haproxy is, routes to them.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { packServer } from '../chaos/harness/program.ts'
import { openSigner } from '../server/src/chains/evm/signer.ts'
import type { Database } from '../server/src/database/db.ts'
import { startCluster } from '../server/src/dev/postgres.ts'
import { insertSettler } from '../server/src/payments/settlers/rows.ts'
import { freePort } from '../server/test/support/free-port.ts'
import { type Chain, countCalls, network } from './pay-chain.ts'
import { cpuMs } from './pay-load.ts'
import { makeDatabase, makeStore, type Server, type Stand, settingsFor, startServer } from './stand.ts'

const execute = promisify(execFile)
const root = new URL('..', import.meta.url).pathname

export type Cell = {
  readonly tag: string
  readonly stand: Stand
  readonly db: Database
  readonly databaseUrl: string
  readonly apiKey: string
  readonly payTo: string
  readonly serves: readonly Unit[]
  readonly work: Unit
  /** The environment of its processes and of the operator's commands. */
  readonly environment: Readonly<Record<string, string>>
}

/** One process of a cell, which keeps its port when it is started again. */
export type Unit = {
  readonly command: 'serve' | 'work'
  readonly address: string
  pid(): number
  /** If it runs, ends it as a service manager does and waits until it has exited. */
  stop(): Promise<void>
  /** Starts it and waits until it is up. */
  start(program: string): Promise<void>
}

export type CellOptions = {
  readonly tag: string
  readonly payTo: string
  /** The server's main file. */
  readonly program: string
  /** How many `serve` it has. */
  readonly serves: number
  /** How long a stopping `serve` reports that on /readyz first. */
  readonly drainSeconds: number
}

/** Accounts of anvil: a wallet for each cell. */
export const cellWallets = [
  '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC',
] as const

/** Bundles a release into a few files, because a run starts many processes. `folder` is where they go. */
export async function pack(folder: string, release = root): Promise<string> {
  const cache = join(folder, 'compiled')
  await mkdir(cache, { recursive: true })
  return await packServer(release, join(folder, 'program'), cache)
}

/** Sets up a cell on an empty stand and starts its processes. */
export async function openCell(chain: Chain, stand: Stand, options: CellOptions): Promise<Cell> {
  const { tag, payTo } = options
  const nodes = [await countCalls(chain.url), await countCalls(chain.url)]
  const settler = await chain.fundedKey()
  const keysFile = join(stand.folder, 'settler-keys')
  await writeFile(keysFile, `0x${settler.key.toString('hex')}\n`)
  await chmod(keysFile, 0o600)
  const { url, db } = await makeDatabase(stand.cluster, 'farthing', true, tag)
  const environment = {
    ...settingsFor(url),
    CELL: tag,
    NETWORKS: 'BASE_MAINNET',
    BASE_MAINNET_RPC_URLS: nodes.map((node) => node.url).join(','),
    SETTLER_KEYS_FILE: keysFile,
    SECRETS_KEY_FILE: join(stand.folder, 'secrets.keys'),
    TRUSTED_PROXIES: '127.0.0.1',
    DRAIN_SECONDS: `${options.drainSeconds}`,
    NODE_COMPILE_CACHE: join(dirname(dirname(options.program)), 'compiled'),
  }
  const apiKey = await makeStore(db, environment, payTo)
  await insertSettler(db, network, openSigner(`0x${settler.key.toString('hex')}`).address.toLowerCase(), 0)
  const open = async (command: Unit['command']) => openUnit(stand, command, await freePort(), environment)
  const serves: Unit[] = []
  for (let i = 0; i < options.serves; i++) serves.push(await open('serve'))
  const work = await open('work')
  await Promise.all([...serves, work].map((unit) => unit.start(options.program)))
  return { tag, stand, db, databaseUrl: url, apiKey, payTo, serves, work, environment }
}

function openUnit(
  stand: Stand,
  command: Unit['command'],
  port: number,
  environment: Readonly<Record<string, string>>,
): Unit {
  let server: Server | null = null
  return {
    command,
    address: `http://127.0.0.1:${port}`,
    pid: () => server?.child.pid ?? 0,
    async stop() {
      if (!server) return
      const { child } = server
      server = null
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
    async start(program) {
      const settings = { ...environment, PORT: `${port}` }
      server = await startServer(stand, command, settings, { program, isSuperuser: false })
    },
  }
}

/** Runs an operator's command for a cell, with the rights of the tables' owner, and returns what it prints. */
export async function operate(
  { environment }: Cell,
  program: string,
  ...words: readonly string[]
): Promise<string> {
  return (await execute(process.execPath, [program, ...words], { env: environment })).stdout
}

/** The processor time that a cell's processes have used, including its database. */
export function cellCpuMs({ stand, serves, work }: Cell): number {
  const pids = [postmasterOf(stand), ...[...serves, work].map((unit) => unit.pid())]
  return pids.reduce((sum, pid) => sum + cpuMs(pid), 0)
}

/** Kills a cell's PostgreSQL without warning, as the loss of a machine does. */
export function killDatabase({ stand }: Cell): void {
  process.kill(postmasterOf(stand), 'SIGKILL')
}

/** Starts it again where it was. It recovers from its write-ahead log. */
export async function startDatabase({ stand, databaseUrl }: Cell): Promise<void> {
  const { port } = new URL(databaseUrl)
  for (let tries = 0; ; tries++) {
    try {
      await startCluster(stand.folder, [...stand.settings, `port=${port}`])
      return
    } catch (error) {
      // The backends of a killed postmaster hold its shared memory for a moment.
      if (tries === 100) throw error
      await wait(100)
    }
  }
}

function postmasterOf({ folder }: Stand): number {
  return Number.parseInt(readFileSync(join(folder, 'data/postmaster.pid'), 'utf8'), 10)
}
