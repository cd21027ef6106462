import { resolve } from 'node:path'
import type { Context } from './context.ts'
import { openDatabase } from './db.ts'
import { migrate } from './migrate.ts'
import { startCluster } from './postgres.ts'
import { serveAndWork } from './processes.ts'
import { createKey } from './stores/api-keys.ts'
import { createStore } from './stores/create.ts'
import { listStores } from './stores/rows.ts'
import { registerWallet } from './stores/wallets.ts'

/** Data of `dev` stays here between starts. */
const folder = resolve('.dev')
const port = '8402'
/** The second account of the well-known test phrase: a wallet that everybody may look into. */
const demoWallet = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

/** One command from a clone to a running checkout: a private PostgreSQL, the schema, a demo store, serve and work. */
export async function dev(
  open: (name: string, environment: Readonly<Record<string, string>>) => Context,
): Promise<void> {
  step('Starting PostgreSQL')
  const cluster = await startCluster(folder, ['cluster_name=farthing_dev'])
  try {
    await ensureDatabase(cluster.url('postgres'))
    const ctx = open('dev', {
      DATABASE_URL: cluster.url('farthing'),
      BASE_URL: `http://127.0.0.1:${port}`,
      PORT: port,
      OPERATIONS_PORT: '0',
      NETWORKS: 'LOCAL',
      LOG_LEVEL: 'error',
      ECB_RATES_URL: '',
      EXCHANGE_RATES_URL: '',
    })
    step('Migrating')
    await migrate(ctx.db)
    await serveAndWork(ctx, async () => show(ctx, await makeDemoKey(ctx)))
  } finally {
    await cluster.stop()
  }
}

async function ensureDatabase(adminUrl: string): Promise<void> {
  const admin = openDatabase({ url: adminUrl, connections: 4, name: 'farthing-dev' })
  const found = await admin.query("select 1 as one from pg_database where datname = 'farthing'")
  if (found.length === 0) await admin.query('create database farthing')
  await admin.close()
}

/** A key's secret is not stored, so each start makes a new key for the same store. */
async function makeDemoKey(ctx: Context): Promise<string> {
  const now = ctx.now()
  const [existing] = await listStores(ctx.db)
  const store = existing ?? (await createStore(ctx, { name: 'Demo store', mode: 'test' }, now))
  await registerWallet(
    ctx,
    store.id,
    'EVM',
    { walletAddress: demoWallet, custodialType: 'NON_CUSTODIAL' },
    now,
  )
  return (await createKey(ctx, store.id, now)).text
}

function show(ctx: Context, key: string): void {
  const { baseUrl } = ctx.config
  process.stdout.write(`
  Farthing is running at ${baseUrl}      API reference: ${baseUrl}/docs/api

  Create a checkout:

    curl -s ${baseUrl}/api/v1/checkouts -H 'X-API-Key: ${key}' \\
      -H 'Content-Type: application/json' \\
      -d '{"orderId":"order-1","priceAmount":"0.50","priceCurrency":"USD"}'

  Ask how to pay it (402), with the id from the answer:

    curl -si -X POST ${baseUrl}/api/v1/checkouts/ch_…

  Ctrl-C stops it. Data stays in ${folder}.
`)
}

function step(text: string): void {
  process.stdout.write(`${text} …\n`)
}
