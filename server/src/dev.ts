import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { networks } from './chains/networks.ts'
import { forgetChain } from './chains/rows.ts'
import { openSigner } from './chains/signer.ts'
import type { Context } from './context.ts'
import { openDatabase } from './db.ts'
import { startLocalChain } from './local-chain.ts'
import { migrate, SchemaError } from './migrate.ts'
import { insertSettler } from './payments/lanes/rows.ts'
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

/** One command from a clone to a running checkout: a private PostgreSQL, a chain, a demo store, serve and work. */
export async function dev(
  open: (name: string, environment: Readonly<Record<string, string>>) => Context,
): Promise<void> {
  step('Starting PostgreSQL')
  const cluster = await startCluster(folder, ['cluster_name=farthing_dev'])
  step('Starting a chain')
  const network = networks.find(({ chainId }) => chainId === 'LOCAL')
  assert(network?.family === 'EVM')
  const chain = await startLocalChain({
    chainId: 31337,
    blockTimeSeconds: 1,
    assets: network.assets.map(({ address, domain }) => ({ address, ...domain })),
  })
  try {
    await ensureDatabase(cluster.url('postgres'))
    const ctx = open('dev', {
      DATABASE_URL: cluster.url('farthing'),
      BASE_URL: `http://127.0.0.1:${port}`,
      PORT: port,
      OPERATIONS_PORT: '0',
      NETWORKS: 'LOCAL',
      LOCAL_RPC_URLS: chain.url,
      LOG_LEVEL: 'error',
      ECB_RATES_URL: '',
      EXCHANGE_RATES_URL: '',
    })
    step('Migrating')
    await migrate(ctx.db).catch(async (error) => {
      await ctx.db.close()
      if (!(error instanceof SchemaError)) throw error
      throw new SchemaError(`${error.message}\nThe database of dev is in ${folder}. Delete it to begin anew.`)
    })
    // The chain is new with every start, so nothing that was known of the last one holds, and neither do its nonces.
    await forgetChain(ctx.db, network.caip2)
    const signer = openSigner(`0x${randomBytes(32).toString('hex')}`)
    await rpc(chain.url, 'anvil_setBalance', [signer.address, '0x56bc75e2d63100000'])
    await insertSettler(ctx.db, network.caip2, signer.address, 0)
    await serveAndWork(ctx, [signer], async () => show(ctx, await makeDemoKey(ctx)))
  } finally {
    await chain.stop()
    await cluster.stop()
  }
}

async function rpc(url: string, method: string, params: readonly unknown[]): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const answer = (await response.json()) as { error?: { message: string } }
  assert(!answer.error, answer.error?.message)
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

  Open the checkoutUrl of the answer in a browser to see its page. Ask how to pay it (402), with the id:

    curl -si -X POST ${baseUrl}/api/v1/checkouts/ch_…

  Ctrl-C stops it. Data stays in ${folder}.
`)
}

function step(text: string): void {
  process.stdout.write(`${text} …\n`)
}
