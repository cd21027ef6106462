/** The test bed ("stand") of a measurement: a private PostgreSQL that commits to disk, real servers, a store. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { readConfig } from '../server/src/config/read.ts'
import type { Context } from '../server/src/context.ts'
import { type Database, openDatabase } from '../server/src/database/db.ts'
import { migrate } from '../server/src/database/migrate.ts'
import { type Cluster, startCluster } from '../server/src/dev/postgres.ts'
import { operatorActor } from '../server/src/events/append.ts'
import { firstCell } from '../server/src/ids.ts'
import { openLog } from '../server/src/log.ts'
import { openMetrics } from '../server/src/metrics.ts'
import { createKeyFile } from '../server/src/secrets/key-file.ts'
import { createKey } from '../server/src/stores/api-keys.ts'
import { createStore } from '../server/src/stores/create.ts'
import { registerWallet } from '../server/src/stores/wallets.ts'

export type Stand = {
  readonly folder: string
  readonly cluster: Cluster
  /** The settings that its PostgreSQL was started with. */
  readonly settings: readonly string[]
  /** Killed when the measurement ends, even if it fails. */
  readonly children: Set<ChildProcess>
}

export type Server = {
  readonly child: ChildProcess
  /** The URL of `serve`. */
  readonly address: string
  readonly operationsPort: number
}

/** A start takes a second, or half a minute on a busy machine. */
const startTimeoutMs = 90_000
const main = new URL('../server/src/main.ts', import.meta.url).pathname
const execute = promisify(execFile)

/**
 * Sets up a stand, runs the measurement and cleans everything up, even when it is interrupted. `settings` are further
 * ones for PostgreSQL.
 */
export async function onStand(
  sharedBuffers: string,
  measure: (stand: Stand) => Promise<void>,
  settings: readonly string[] = [],
): Promise<void> {
  await onStands(1, sharedBuffers, async ([stand]) => await measure(stand ?? assert.fail()), settings)
}

/** The same with several stands, each with its own PostgreSQL and folder. */
export async function onStands(
  count: number,
  sharedBuffers: string,
  measure: (stands: readonly Stand[]) => Promise<void>,
  settings: readonly string[] = [],
): Promise<void> {
  const stands: Stand[] = []
  const interrupted = new Promise<never>((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => reject(new Error(`interrupted by ${signal}`)))
  })
  try {
    const opened = await Promise.allSettled(
      Array.from({ length: count }, async () => stands.push(await openStand(sharedBuffers, settings))),
    )
    for (const one of opened) if (one.status === 'rejected') throw one.reason
    await Promise.race([measure(stands), interrupted])
  } finally {
    for (const { children } of stands) for (const child of children) child.kill('SIGKILL')
    for (const { cluster, folder } of stands) {
      // The measurement may have stopped it.
      await cluster.stop().catch(() => {})
      await rm(folder, { recursive: true, force: true })
    }
  }
}

async function openStand(sharedBuffers: string, furtherSettings: readonly string[]): Promise<Stand> {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-bench-'))
  const settings = [
    'cluster_name=farthing_bench',
    `shared_buffers=${sharedBuffers}`,
    'max_wal_size=4GB',
    'fsync=on',
    'synchronous_commit=on',
    ...furtherSettings,
  ]
  const cluster = await startCluster(folder, settings)
  await createKeyFile(secretsKeyFile(folder))
  return { folder, cluster, settings, children: new Set() }
}

function secretsKeyFile(folder: string): string {
  return join(folder, 'secrets.keys')
}

export async function makeDatabase(
  cluster: Cluster,
  name: string,
  isMigrated = true,
  cell = firstCell,
): Promise<{ url: string; db: Database }> {
  const admin = openDatabase({ url: cluster.url('postgres'), connections: 4, name: 'bench' })
  await admin.query(`create database ${name}`)
  await admin.close()
  const url = cluster.url(name)
  const db = openDatabase({ url, connections: 4, name: 'bench' })
  if (isMigrated) {
    await migrate(db, { cell })
    await letRolesLogIn(db)
  }
  return { url, db }
}

/** The cluster trusts every connection from loopback. A migration of another commit may not create the roles. */
export async function letRolesLogIn(db: Database): Promise<void> {
  for (const role of ['console', 'serve', 'work'])
    await db.query(`do $$ begin
      if to_regrole('farthing_${role}') is not null then alter role farthing_${role} login; end if;
    end $$`)
}

/** Rate limits are raised, because the load generator is a single caller with one key and one IP address. */
export function settingsFor(databaseUrl: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    ...(process.env.NODE_OPTIONS !== undefined && { NODE_OPTIONS: process.env.NODE_OPTIONS }),
    DATABASE_URL: databaseUrl,
    BASE_URL: 'https://farthing.example',
    PORT: '0',
    OPERATIONS_PORT: '0',
    KEY_REQUESTS_PER_SECOND: '1000000',
    ADDRESS_REQUESTS_PER_SECOND: '1000000',
    SETTLER_ETH_PER_DAY: '',
    SETTLER_ETH_PER_TRANSACTION: '',
    ECB_RATES_URL: '',
    EXCHANGE_RATES_URL: '',
  }
}

/** Creates a live store with this wallet. Returns its API key. */
export async function makeStore(
  db: Database,
  settings: Readonly<Record<string, string>>,
  walletAddress: string,
): Promise<string> {
  const ctx: Context = {
    config: readConfig(settings),
    db,
    log: openLog('silent'),
    metrics: openMetrics(),
    now: () => new Date(),
  }
  const actor = operatorActor('bench')
  const store = await createStore(ctx, { name: 'Bench', mode: 'live' }, ctx.now())
  await registerWallet(
    ctx,
    store.id,
    actor,
    { family: 'EVM', walletAddress, custodialType: 'NON_CUSTODIAL' },
    ctx.now(),
  )
  return (await createKey(ctx, store.id, { actor, limit: null }, {}, ctx.now())).text
}

function urlAs(command: 'serve' | 'work', url: string): string {
  return Object.assign(new URL(url), { username: `farthing_${command}` }).href
}

/** Starts a process that logs to a file, as an operator would, and waits for the log line that says it is up. */
export async function startServer(
  { folder, children }: Pick<Stand, 'folder' | 'children'>,
  command: 'serve' | 'work',
  environment: Readonly<Record<string, string>>,
  { program = main, isSuperuser }: { program?: string; isSuperuser?: boolean } = {},
): Promise<Server> {
  const path = join(folder, `${command}-${children.size}.log`)
  const log = openSync(path, 'w')
  const child = spawn(process.execPath, [program, command], {
    stdio: ['ignore', log, 'inherit'],
    env: {
      SECRETS_KEY_FILE: secretsKeyFile(folder),
      ...environment,
      // Another commit may know no roles.
      ...(!(isSuperuser ?? program !== main) && {
        DATABASE_URL: urlAs(command, environment.DATABASE_URL ?? ''),
      }),
    },
  })
  closeSync(log)
  children.add(child)
  const deadline = Date.now() + startTimeoutMs
  while (Date.now() < deadline && child.exitCode === null) {
    const line = (await readFile(path, 'utf8'))
      .split('\n')
      .find((text) => /"msg":"(listening|working)"/.test(text))
    if (line) return { child, ...JSON.parse(line) }
    await wait(20)
  }
  throw new Error(`${command} did not start: ${await readFile(path, 'utf8')}`)
}

/** Runs a script with `pgbench`. Throws if any transaction failed. */
export async function runPgbench(
  databaseUrl: string,
  script: string,
  options: { readonly clients: number; readonly seconds: number; readonly define: string },
): Promise<{ readonly perSecond: number; readonly transactions: number }> {
  const { pathname, hostname, port, username } = new URL(databaseUrl)
  const { stdout } = await execute('pgbench', [
    ...['-n', '-M', 'prepared', '-j', '2', '-c', String(options.clients), '-T', String(options.seconds)],
    ...['-D', options.define, '-f', script, '-h', hostname, '-p', port, '-U', username, pathname.slice(1)],
  ])
  const [, rate] = /^tps = ([\d.]+)/m.exec(stdout) ?? []
  const [, count] = /^number of transactions actually processed: (\d+)/m.exec(stdout) ?? []
  if (!rate || !count || !/failed transactions: 0 /.test(stdout)) throw new Error(stdout)
  return { perSecond: Number.parseFloat(rate), transactions: Number.parseInt(count, 10) }
}
