import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { ConfigError, readDevChoices } from '../config/read.ts'
import type { Context } from '../context.ts'
import { openDatabase } from '../database/db.ts'
import { migrate } from '../database/migrate.ts'
import { SchemaError } from '../database/schema.ts'
import { networks } from '../networks.ts'
import { openRails } from '../payments/rails.ts'
import { openReadiness } from '../payments/settlers/readiness.ts'
import { createKeyFile } from '../secrets/key-file.ts'
import { openDevChain } from './chain.ts'
import { liveToday, makeDemoCheckout, makeDemoPast, makeDemoStore } from './demo.ts'
import { startPart } from './parts.ts'
import { startCluster } from './postgres.ts'
import { openScreen } from './screen.ts'
import { makeDemoOwner, makePasskeyLink, makeSignInLink } from './sign-in.ts'

/** `dev` keeps everything here between starts. */
const folder = resolve('.dev')
const pidFile = join(folder, 'dev.pid')
/** Units per US dollar. They never change, so that prices can be checked by hand and need no network. */
const rates = 'EUR=0.86,GBP=0.76,CHF=0.80,INR=88,JPY=155'
const readyTimeoutMs = 60_000
const readyLookMs = 50

type Open = (name: string, settings: Readonly<Record<string, string>>) => Context
type Stops = (() => Promise<unknown>)[]

/**
 * One command from a clone to a payment: a private PostgreSQL, a chain with a token, a demo store, and `serve` and
 * `work` as separate processes, so that you can kill one and see what happens. However this ends, everything it started
 * is stopped, in reverse order.
 */
export async function dev(open: Open, now: () => Date): Promise<void> {
  const { databaseUrl, port, consolePort } = readDevChoices()
  const screen = openScreen(process.stdout, now)
  const stops: Stops = []
  const ending = new AbortController()
  let failure: Error | null = null
  // Ctrl-C may come more than once, from the terminal and from npm; the second must not interrupt the shutdown.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => ending.abort())
  // The terminal was closed. The output goes nowhere, but everything must still be stopped.
  process.stdout.on('error', () => ending.abort())
  const step = async <Result>(name: string, work: () => Promise<Result>): Promise<Result> => {
    ending.signal.throwIfAborted()
    return await screen.step(name, work)
  }
  try {
    await beAlone([port, consolePort], stops)
    const database = databaseUrl ?? (await step('PostgreSQL', () => startDatabase(stops)))
    const network = networks.find(({ id }) => id === 'LOCAL')
    assert(network?.family === 'EVM')
    const chain = await step('Chain', () => openDevChain(join(folder, 'chain'), network, stops))
    const settings = {
      DATABASE_URL: database,
      BASE_URL: `http://127.0.0.1:${port}`,
      PORT: `${port}`,
      CONSOLE_URL: `http://localhost:${consolePort}`,
      CONSOLE_PORT: `${consolePort}`,
      OPERATIONS_PORT: '0',
      NETWORKS: `${network.id},SIMULATED`,
      LOCAL_RPC_URLS: chain.url,
      SETTLER_KEYS_FILE: chain.keysFile,
      RECEIPT_KEYS_FILE: await makeReceiptKey(),
      SECRETS_KEY_FILE: await keepSecretsKey(),
      FIXED_RATES: rates,
      ECB_RATES_URL: '',
      EXCHANGE_RATES_URL: '',
    }
    // Our own database has its own roles. A database in DATABASE_URL has only those that its owner made.
    const urlOf = (role: string) =>
      databaseUrl === null
        ? Object.assign(new URL(database), { username: `farthing_${role}` }).href
        : database
    const ctx = open('dev', settings)
    stops.push(() => ctx.db.close())
    const store = await step('Demo store', async () => {
      await migrateOwn(ctx)
      if (databaseUrl === null) await letRolesLogIn(ctx)
      await chain.introduce(ctx)
      return await makeDemoStore(ctx)
    })
    // It takes a few seconds, so it runs while the processes start.
    const past = store.isNew ? makeDemoPast(ctx, store.id, network) : Promise.resolve()
    past.catch(() => {})
    await step('serve and work', async () => {
      const fail = (error: Error) => {
        failure = error
        ending.abort()
      }
      const parts = (['serve', 'work'] as const).map(async (name) => {
        const own = { ...settings, DATABASE_URL: urlOf(name), CONSOLE_DATABASE_URL: urlOf('console') }
        stops.push(await startPart({ name, folder, settings: own, say: screen.say, fail }))
      })
      // Wait for all of them, so that none starts after we have stopped the others.
      await Promise.allSettled(parts)
      await Promise.all(parts)
      await untilReady(ctx, network.caip2, ending.signal)
    })
    if (store.isNew) await step('History', () => past)
    const logins = {
      owner: database,
      operator: urlOf('operator'),
      serve: urlOf('serve'),
      work: urlOf('work'),
    }
    const demo = await makeDemoCheckout(ctx, store.id, folder, await writeSettings(settings, logins))
    const owner = await makeDemoOwner(ctx, store.id)
    const consoleUrl = await makeSignInLink(ctx, owner)
    screen.show({ ...demo, consoleUrl, passkeyUrl: await makePasskeyLink(ctx, store.id, owner), rates })
    const today = store.isNew ? liveToday(demo, ending.signal) : Promise.resolve()
    stops.push(() => today.catch(() => {}))
    today.catch((error) => {
      if (!ending.signal.aborted) screen.say(`Not all of today's demo orders could be made: ${error}`)
    })
    if (!ending.signal.aborted) await once(ending.signal, 'abort')
  } catch (error) {
    if (!ending.signal.aborted) failure = error instanceof Error ? error : new Error(String(error))
  }
  screen.say('Stopping …')
  for (const stop of stops.toReversed()) await stop().catch((error) => screen.say(String(error)))
  if (failure) throw failure
  screen.say('Stopped. Data and chain are kept in .dev.')
}

/** Two `dev` in one folder would stop each other's database, and two on one port would answer each other's requests. */
async function beAlone(ports: readonly number[], stops: Stops): Promise<void> {
  await mkdir(folder, { recursive: true })
  const other = Number.parseInt(await readFile(pidFile, 'utf8').catch(() => ''), 10)
  if (other > 0 && isAlive(other))
    throw new ConfigError(`dev is already running here as process ${other}. If it is not, delete ${pidFile}.`)
  for (const port of ports) {
    const probe = createServer()
    await new Promise<void>((resolve, reject) => {
      probe.once('error', () =>
        reject(
          new ConfigError(
            `Port ${port} is taken. Choose another: PORT=8500 npm run dev. The console takes the one after it, or CONSOLE_PORT.`,
          ),
        ),
      )
      probe.listen(port, '127.0.0.1', resolve)
    })
    await new Promise((resolve) => probe.close(resolve))
  }
  await writeFile(pidFile, `${process.pid}\n`)
  stops.push(() => rm(pidFile, { force: true }))
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function startDatabase(stops: Stops): Promise<string> {
  const cluster = await startCluster(folder, ['cluster_name=farthing_dev'])
  stops.push(() => cluster.stop())
  const admin = openDatabase({ url: cluster.url('postgres'), connections: 4, name: 'farthing-dev' })
  const found = await admin.query("select 1 as one from pg_database where datname = 'farthing'")
  if (found.length === 0) await admin.query('create database farthing')
  await admin.close()
  return cluster.url('farthing')
}

/** A key for receipts, kept between starts so that earlier receipts can still be verified. */
async function makeReceiptKey(): Promise<string> {
  const file = join(folder, 'receipt-keys.pem')
  const { privateKey } = generateKeyPairSync('ed25519')
  const pem = privateKey.export({ format: 'pem', type: 'pkcs8' })
  await writeFile(file, pem, { mode: 0o600, flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  return file
}

/** As in a deployment: a file with all settings, and one file with the login of each database role, for `farthing-admin`. */
async function writeSettings(
  { DATABASE_URL: _, ...common }: Readonly<Record<string, string>>,
  logins: Readonly<Record<string, string>>,
): Promise<string> {
  const settingsFolder = join(folder, 'settings')
  await mkdir(settingsFolder, { recursive: true })
  const lines = Object.entries(common).map(([name, value]) => `${name}=${value}\n`)
  await writeFile(join(settingsFolder, 'env'), lines.join(''))
  for (const [role, url] of Object.entries(logins))
    await writeFile(join(settingsFolder, `${role}.env`), `DATABASE_URL=${url}\n`)
  return settingsFolder
}

/** Kept between starts, like the database whose secrets it seals. */
async function keepSecretsKey(): Promise<string> {
  const file = join(folder, 'secrets.keys')
  await createKeyFile(file)
  return file
}

async function migrateOwn(ctx: Context): Promise<void> {
  await migrate(ctx.db, { cell: ctx.config.cell }).catch((error) => {
    if (!(error instanceof SchemaError)) throw error
    throw new SchemaError(
      error.message,
      `The database of dev is in ${folder}. Delete that folder to start over.`,
      error,
    )
  })
}

/** Our own cluster trusts connections from loopback, so they need no passwords. */
async function letRolesLogIn({ db }: Context): Promise<void> {
  for (const role of ['serve', 'work', 'console', 'operator'])
    await db.query(`alter role farthing_${role} login`)
}

/** Waits until a payment would be accepted: the worker has seen the chain, and its lane is live. */
async function untilReady(ctx: Context, network: string, ending: AbortSignal): Promise<void> {
  const readiness = openReadiness(ctx, openRails(ctx))
  const end = ctx.now().getTime() + readyTimeoutMs
  for (;;) {
    const reason = await readiness(network)
    if (reason === null) return
    ending.throwIfAborted()
    if (ctx.now().getTime() > end) throw new Error(`${reason} See ${folder}/work.log.`)
    await wait(readyLookMs)
  }
}
