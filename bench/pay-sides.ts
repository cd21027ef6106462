/** The two sides that `pay.ts` compares, each in its own processes: Farthing and the stock x402 packages. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { getAddress } from 'viem'
import { openSigner } from '../server/src/chains/evm/signer.ts'
import type { Database } from '../server/src/database/db.ts'
import { asset, type Chain, type Counter, countCalls, type Payer, units } from './pay-chain.ts'
import type { Ready } from './pay-load.ts'
import { openTill, readTerms, ready } from './pay-till.ts'
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
const reference = new URL('pay-reference.ts', import.meta.url).pathname
const root = new URL('..', import.meta.url).pathname
const otherPayTo = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'
const execute = promisify(execFile)

/** `address` is where the API is, and `apiKey` is the store's. */
export type Ours = Side & { readonly db: Database; readonly address: string; readonly apiKey: string }

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
  return {
    name,
    db,
    address,
    apiKey: key,
    payTo,
    pids: () => [serve, work].map(({ child }) => child.pid ?? 0),
    calls: () => sum(counters),
    prepare: openTill(address, key),
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

function sum(counters: readonly Counter[]): Map<string, number> {
  const total = new Map<string, number>()
  for (const counter of counters) {
    for (const [method, count] of counter.calls()) total.set(method, (total.get(method) ?? 0) + count)
  }
  return total
}
