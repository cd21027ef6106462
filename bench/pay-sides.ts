/** The two sides that `pay.ts` compares, each in its own processes: Farthing and the stock x402 packages. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { PaymentRequired } from '@farthing/sdk'
import { getAddress } from 'viem'
import { openSigner } from '../server/src/chains/evm/signer.ts'
import type { Database } from '../server/src/database/db.ts'
import {
  asset,
  type Chain,
  type Counter,
  countCalls,
  network,
  type Payer,
  paymentHeader,
  units,
} from './pay-chain.ts'
import type { Ready } from './pay-load.ts'
import { letRolesLogIn, makeDatabase, type Stand, settingsFor, startServer } from './stand.ts'

export type Side = {
  readonly name: 'ours' | 'other' | 'reference'
  readonly payTo: string
  /** The processes whose processor time is counted. */
  readonly pids: () => readonly number[]
  /** Calls to the node so far, by method. */
  readonly calls: () => ReadonlyMap<string, number>
  /** Signs one payment per payer; ours creates a checkout for each first. */
  readonly prepare: (payers: readonly Payer[]) => Promise<Ready[]>
  /** Finishes or discards what a stage left over, so that it does not disturb the next. Returns true if it restarted. */
  readonly settleDown: () => Promise<boolean>
}

const settleTimeoutMs = 60_000
const createsAtOnce = 64
const reference = new URL('pay-reference.ts', import.meta.url).pathname
const root = new URL('..', import.meta.url).pathname
const otherPayTo = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'
const execute = promisify(execFile)

export type Ours = Side & { readonly db: Database }

type OursOptions = {
  /** How long the nodes wait before they answer. */
  readonly nodeDelayMs?: number
  /** The folder of another version of Farthing, to compare with. */
  readonly tree?: string
}

/**
 * One serve, one work, one settler, set up by the operator's commands. Base requires two nodes: here they are two
 * proxies to the same node.
 */
export async function openOurs(
  chain: Chain,
  stand: Stand,
  { nodeDelayMs = 0, tree }: OursOptions = {},
): Promise<Ours> {
  const name = tree === undefined ? 'ours' : 'other'
  const payTo = name === 'ours' ? '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' : otherPayTo
  const counters = [await countCalls(chain.url, nodeDelayMs), await countCalls(chain.url, nodeDelayMs)]
  const settler = await chain.fundedKey()
  const keysFile = join(stand.folder, `${name}-settler-keys`)
  await writeFile(keysFile, `0x${settler.key.toString('hex')}\n`)
  await chmod(keysFile, 0o600)
  const { url, db } = await makeDatabase(stand.cluster, name, false)
  const environment = {
    ...settingsFor(url),
    NETWORKS: 'BASE_MAINNET',
    BASE_MAINNET_RPC_URLS: counters.map((counter) => counter.url).join(','),
    SETTLER_KEYS_FILE: keysFile,
  }
  const main = join(tree ?? root, 'server/src/main.ts')
  const command = async (...words: string[]) =>
    (await execute(process.execPath, [main, ...words], { env: environment })).stdout
  await command('migrate')
  await letRolesLogIn(db)
  const said = await command('store', 'create', '--name', 'Bench', '--evm-wallet', payTo)
  const key = /\bsk_\w+/.exec(said)?.[0] ?? ''
  assert(key !== '', said)
  await command('settler', 'add', 'BASE_MAINNET', openSigner(`0x${settler.key.toString('hex')}`).address)
  const serve = await startServer(stand, 'serve', environment, { program: main })
  const work = await startServer(stand, 'work', environment, { program: main })
  const { address } = serve
  let accepted: PaymentRequired['accepts'][number] | undefined

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
    name,
    db,
    payTo,
    pids: () => [serve, work].map(({ child }) => child.pid ?? 0),
    calls: () => sum(counters),
    async prepare(payers) {
      const urls: string[] = []
      while (urls.length < payers.length) {
        const count = Math.min(createsAtOnce, payers.length - urls.length)
        urls.push(...(await Promise.all(Array.from({ length: count }, create))))
      }
      const [first] = urls
      if (!accepted && first) accepted = await readTerms(first)
      const terms = accepted
      assert(terms)
      return payers.map((payer, i) => ready(payer, terms, urls[i] ?? ''))
    },
    async settleDown() {
      const deadline = Date.now() + settleTimeoutMs
      // Until every payment is final on the chain and every event has its number.
      const isBusy = `select 1 as one where exists (select 1 from checkouts where status = 'PROCESSING')
        or exists (select 1 from credits where orphaned_at is null and finalized_at is null)
        or exists (select 1 from events where sequence is null)`
      while ((await db.query(isBusy)).length > 0 && Date.now() < deadline) await chain.blocks.next()
      return false
    },
  }
}

/** Each stage gets a new process and a new key: a nonce that one stage skipped would block the next. */
export async function openReference(chain: Chain, { children }: Stand): Promise<Side> {
  const payTo = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
  const counter = await countCalls(chain.url)
  let running = await start()

  async function start() {
    const settler = await chain.fundedKey()
    const child = spawn(process.execPath, [reference], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env.PATH ?? '',
        REFERENCE_RPC_URL: counter.url,
        REFERENCE_KEY: `0x${settler.key.toString('hex')}`,
        REFERENCE_PAY_TO: getAddress(payTo),
        REFERENCE_ASSET: asset,
        REFERENCE_UNITS: `${units}`,
      },
    })
    children.add(child)
    const said = await new Promise<string>((resolve, reject) => {
      child.stdout?.once('data', (chunk) => resolve(String(chunk)))
      child.once('exit', (code) => reject(new Error(`the reference exited with ${code}`)))
    })
    const url = `${said.trim().replace('listening ', '')}/resource`
    return { child, url, terms: await readTerms(url) }
  }

  return {
    name: 'reference',
    payTo,
    pids: () => [running.child.pid ?? 0],
    calls: counter.calls,
    prepare: async (payers) => payers.map((payer) => ready(payer, running.terms, running.url)),
    async settleDown() {
      const { child } = running
      children.delete(child)
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      await chain.settleDown(10)
      running = await start()
      return true
    },
  }
}

function ready(payer: Payer, accepted: { payTo: string }, url: string): Ready {
  return { payer, url, header: paymentHeader(payer, accepted, url) }
}

/** The first way to pay that a 402 offers. */
async function readTerms(url: string): Promise<PaymentRequired['accepts'][number]> {
  const response = await fetch(url, { method: 'POST' })
  assert.equal(response.status, 402)
  const [accepted] = ((await response.json()) as PaymentRequired).accepts
  assert(accepted && accepted.amount === `${units}` && accepted.network === network)
  return accepted
}

function sum(counters: readonly Counter[]): Map<string, number> {
  const total = new Map<string, number>()
  for (const counter of counters) {
    for (const [method, count] of counter.calls()) total.set(method, (total.get(method) ?? 0) + count)
  }
  return total
}
