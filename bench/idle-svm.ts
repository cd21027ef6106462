/**
 * Measures the Solana part of `idle.ts`: one `serve` and one `work` process on a private PostgreSQL, one settler, and a
 * ledger with the real cluster's slots and finality. The SDK pays, so `serve` prepares the transaction.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { pay, type SolanaSigner, solanaSigner } from '@farthing/sdk/pay'
import { monthSeconds } from '../server/src/chains/plans.ts'
import { makeSvmKey } from '../server/src/chains/svm/signer.ts'
import type { Database } from '../server/src/database/db.ts'
import { networks } from '../server/src/networks.ts'
import { startLocalSvm } from '../server/test/support/local-svm/start.ts'
import { round, say } from './figures.ts'
import type { Figures } from './idle.ts'
import { type Counter, countCalls } from './pay-chain.ts'
import { letRolesLogIn, makeDatabase, onStand, type Stand, settingsFor, startServer } from './stand.ts'

const genesisHash = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d'
const finalizedAfter = 31
const payments = 5
/** The first looks after a start ask for more than later ones. */
const warmSeconds = 30
const finalWaitMs = 120_000
const main = new URL('../server/src/main.ts', import.meta.url).pathname
const execute = promisify(execFile)

async function measure(stand: Stand, idleSeconds: number): Promise<Figures> {
  const shop = await openShop(stand)
  try {
    // Whoever pays first finds out that the network is followed.
    await payOnce(shop)
    await wait(warmSeconds * 1_000)
    const idle = await countDuring(shop.counters, () => wait(idleSeconds * 1_000))
    const paying = await countDuring(shop.counters, async () => {
      for (let i = 0; i < payments; i++) await payOnce(shop)
    })
    const perMonth = scale(idle, monthSeconds / idleSeconds, 0)
    const perPayment = scale(paying, 1 / payments, 1)
    return {
      callsPerMonthIdle: round(sum(perMonth), 0),
      callsPerPayment: round(sum(perPayment), 1),
      methods: perMonth,
      methodsPerPayment: perPayment,
    }
  } finally {
    await shop.close()
  }
}

type Shop = {
  readonly db: Database
  readonly counters: readonly Counter[]
  readonly create: () => Promise<string>
  readonly newPayer: () => Promise<SolanaSigner>
  readonly close: () => Promise<void>
}

async function openShop(stand: Stand): Promise<Shop> {
  const network = networks.find(({ id }) => id === 'SOLANA_MAINNET')
  assert(network?.family === 'SOLANA')
  const [asset] = network.assets
  assert(asset)
  const chain = await startLocalSvm({
    now: () => new Date(),
    slotMs: network.blockTimeMs,
    mints: network.assets,
    genesisHash,
    finalizedAfter,
  })
  const counters = [await countCalls(chain.url), await countCalls(chain.url)]
  const newAccount = () => {
    const key = makeSvmKey()
    return { key, signer: solanaSigner(Uint8Array.from(JSON.parse(key) as number[])) }
  }
  const [settler, till] = [newAccount(), newAccount()]
  await chain.fund(settler.signer.address, { lamports: 10_000_000_000n })
  await chain.fund(till.signer.address, { token: [asset.address, 0n] })
  const keysFile = join(stand.folder, 'settler-keys')
  await writeFile(keysFile, `${settler.key}\n`)
  await chmod(keysFile, 0o600)
  const { url, db } = await makeDatabase(stand.cluster, 'idle', false)
  const environment = {
    ...settingsFor(url),
    NETWORKS: network.id,
    [`${network.id}_RPC_URLS`]: counters.map((counter, i) => `node-${i + 1}=${counter.url}`).join(','),
    SETTLER_KEYS_FILE: keysFile,
  }
  const command = async (...words: string[]) =>
    (await execute(process.execPath, [main, ...words], { env: environment })).stdout
  await command('migrate')
  await letRolesLogIn(db)
  const said = await command('store', 'create', '--name', 'Bench', '--solana-wallet', till.signer.address)
  const key = /\bsk_\w+/.exec(said)?.[0] ?? ''
  assert(key !== '', said)
  await command('settler', 'add', network.id, settler.signer.address)
  const { address } = await startServer(stand, 'serve', environment)
  await startServer(stand, 'work', environment)

  async function create(): Promise<string> {
    const response = await fetch(`${address}/api/v1/checkouts`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ orderId: 'order-1', priceAmount: '0.10', priceCurrency: 'USD' }),
    })
    const text = await response.text()
    assert.equal(response.status, 201, text)
    return `${address}/api/v1/checkouts/${JSON.parse(text).id}`
  }

  return {
    db,
    counters,
    create,
    async newPayer() {
      const { signer } = newAccount()
      await chain.fund(signer.address, { token: [asset.address, 1_000_000n] })
      return signer
    },
    async close() {
      for (const counter of counters) counter.close()
      await Promise.all([chain.stop(), db.close()])
    },
  }
}

/** Pays a checkout, and waits until that is final and no longer watched. */
async function payOnce({ db, create, newPayer }: Shop): Promise<void> {
  const payer = await newPayer()
  const url = await create()
  const deadline = Date.now() + finalWaitMs
  const result = await pay(url, payer, { max: '1.00' })
  assert.equal(result.outcome, 'paid', JSON.stringify(result))
  const isWatched = 'select 1 as one from transactions where mined_at is null'
  while ((await db.query(isWatched)).length > 0) {
    assert(Date.now() < deadline, 'the payment does not become final')
    await wait(200)
  }
}

/** The calls that the busier provider gets while this happens, by method. */
async function countDuring(counters: readonly Counter[], work: () => Promise<void>) {
  const before = counters.map((counter) => counter.calls())
  await work()
  const counts = counters.map((counter, i) =>
    Object.fromEntries(
      [...counter.calls()].map(([method, count]) => [method, count - (before[i]?.get(method) ?? 0)]),
    ),
  )
  const [most = assert.fail('there is no provider')] = counts.toSorted((a, b) => sum(b) - sum(a))
  return most
}

function scale(counts: Readonly<Record<string, number>>, by: number, digits: number): Record<string, number> {
  const scaled = Object.entries(counts).map(([method, count]) => [method, round(count * by, digits)] as const)
  return Object.fromEntries(scaled.filter(([, count]) => count > 0))
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

const { values } = parseArgs({ options: { short: { type: 'boolean', default: false } } })
let figures: Figures | null = null
await onStand('128MB', async (stand) => {
  figures = await measure(stand, values.short ? 60 : 300)
})
say(JSON.stringify(figures))
// Sockets of killed processes may still be closing.
process.exit()
