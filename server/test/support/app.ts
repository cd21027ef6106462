import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import { readConfig } from '../../src/config/read.ts'
import type { Context } from '../../src/context.ts'
import { openDatabase } from '../../src/database/db.ts'
import { buildApp } from '../../src/http/app.ts'
import { firstCell } from '../../src/ids.ts'
import { openLog } from '../../src/log.ts'
import { openMetrics } from '../../src/metrics.ts'
import { createKey } from '../../src/stores/api-keys.ts'
import { createStore } from '../../src/stores/create.ts'
import type { Store } from '../../src/stores/store.ts'
import { registerWallet } from '../../src/stores/wallets.ts'
import { atEnd } from './at-end.ts'
import { freshDatabase, urlAs } from './database.ts'
import { byOperator, operator } from './operator.ts'
import { secretsKeyFile } from './secrets-key.ts'

/** A wallet whose key no test uses, for stores that need one. */
export const wallet = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

export type TestApp = {
  /** For the test itself, with all rights. The application has those of `serve`, a worker those of `work`. */
  readonly ctx: Context
  readonly app: FastifyInstance
  readonly databaseUrl: string
  /** The time that the process sees. Set it to change that; the database has its own clock. */
  readonly clock: { now: Date | null }
  /** What was logged, if the settings have a LOG_LEVEL. */
  readonly logged: readonly Readonly<Record<string, unknown>>[]
  request(options: InjectOptions): Promise<LightMyRequestResponse>
}

/** The whole HTTP application on its own database, called without a socket, with limits so high that none applies. */
export async function openTestApp(settings: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  const { url } = await freshDatabase()
  const config = readConfig({
    DATABASE_URL: url,
    BASE_URL: 'https://farthing.example',
    CHECKOUT_PAGE_URL: 'https://pay.farthing.example/c',
    NETWORKS: 'BASE_MAINNET,BASE_SEPOLIA',
    SECRETS_KEY_FILE: secretsKeyFile,
    KEY_REQUESTS_PER_SECOND: '1000000',
    ADDRESS_REQUESTS_PER_SECOND: '1000000',
    ...settings,
  })
  const clock: TestApp['clock'] = { now: null }
  const logged: Record<string, unknown>[] = []
  const db = openDatabase({ url, connections: 8, name: 'test-app' })
  // The template that databases are made from is cell 00.
  if (config.cell !== firstCell) await db.query('update cell set tag = $1', [config.cell])
  const directory =
    config.directoryUrl === ''
      ? null
      : openDatabase({ url: config.directoryUrl, connections: 8, name: 'test-directory' })
  const ctx: Context = {
    config,
    db,
    ...(directory && { directory }),
    log: openLog(settings.LOG_LEVEL ?? 'silent', { write: (line) => logged.push(JSON.parse(line)) }),
    metrics: openMetrics(),
    now: () => clock.now ?? new Date(),
  }
  const serveDb = openDatabase({ url: urlAs('serve', url), connections: 8, name: 'test-app' })
  const app = buildApp({ ...ctx, db: serveDb }, { isDraining: false })
  atEnd(async () => {
    await app.close()
    await Promise.all([db.close(), serveDb.close(), directory?.close()])
  })
  await app.ready()
  return { ctx, app, databaseUrl: url, clock, logged, request: (options) => app.inject(options) }
}

/** The same application as another process on the same database would run it, with nothing shared in memory. */
export async function openNeighbour(test: TestApp): Promise<FastifyInstance> {
  const db = openDatabase({ url: urlAs('serve', test.databaseUrl), connections: 4, name: 'neighbour' })
  const app = buildApp({ ...test.ctx, db }, { isDraining: false })
  atEnd(async () => {
    await app.close()
    await db.close()
  })
  await app.ready()
  return app
}

export type TestStore = { readonly store: Store; readonly key: string }

/** Creates a store with a key and, by default, an EVM wallet. */
export async function makeStore(
  ctx: Context,
  options: { mode?: 'live' | 'test'; evmWallet?: string | null } = {},
): Promise<TestStore> {
  const now = ctx.now()
  const store = await createStore(ctx, { name: 'Shop', mode: options.mode ?? 'live' }, now)
  const walletAddress = options.evmWallet === undefined ? wallet : options.evmWallet
  if (walletAddress)
    await registerWallet(
      ctx,
      store.id,
      operator,
      { family: 'EVM', walletAddress, custodialType: 'NON_CUSTODIAL' },
      now,
    )
  const { text } = await createKey(ctx, store.id, byOperator, {}, now)
  return { store, key: text }
}
