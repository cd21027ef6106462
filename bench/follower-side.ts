/** The followers that `follower.ts` measures, and the blocks that they read. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Hex } from 'viem'
import { batchCalldata, batcher } from '../server/src/chains/evm/batcher.ts'
import { readConfig } from '../server/src/config/read.ts'
import type { Context } from '../server/src/context.ts'
import type { Database, Transaction } from '../server/src/database/db.ts'
import { newId } from '../server/src/ids.ts'
import { openLog } from '../server/src/log.ts'
import { openMetrics } from '../server/src/metrics.ts'
import { networks } from '../server/src/networks.ts'
import { asset, type Chain, countCalls, network, type Payer, sign, units } from './pay-chain.ts'
import { makeDatabase, makeStore, type Stand, settingsFor } from './stand.ts'

/** anvil's `safe` is four blocks behind its head, and `finalized` eight. */
export const blocksToSafe = 4
const callsPerTransaction = 160
const gasPerTransaction = 16_700_000n
const gasPerCall = 160_000n
const payTo = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
/** The account that sends the payments, one of those that anvil signs for. */
const hand = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'
/** A follower that makes no progress must not block the run. */
const stepsMax = 2_000
const limitMs = 240_000

/** One version's follower with its own database, reading the same chain as the others. */
export type Side = {
  readonly name: 'ours' | 'other'
  readonly db: Database
  readonly storeId: string
  readonly calls: () => number
  /** Reads until there is nothing left to read. Returns how long each step took. */
  readonly follow: () => Promise<number[]>
}

export async function openSide(chain: Chain, stand: Stand, name: Side['name'], tree: string): Promise<Side> {
  const load = async <Module>(path: string): Promise<Module> =>
    (await import(pathToFileURL(join(tree, 'server/src', path)).href)) as Module
  const { followOnce } =
    await load<typeof import('../server/src/chains/evm/follower.ts')>('chains/evm/follower.ts')
  const { openListener } = await load<typeof import('../server/src/payments/evm/credit-blocks.ts')>(
    'payments/evm/credit-blocks.ts',
  )
  const { updateStatus } = await load<typeof import('../server/src/checkouts/update-status.ts')>(
    'checkouts/update-status.ts',
  )
  const evm = await load<typeof import('../server/src/chains/evm/chain.ts')>('chains/evm/chain.ts')
  const { migrate } = await load<typeof import('../server/src/database/migrate.ts')>('database/migrate.ts')
  const { url, db } = await makeDatabase(stand.cluster, name, false)
  await migrate(db)
  const counters = [await countCalls(chain.url), await countCalls(chain.url)]
  const settings = {
    ...settingsFor(url),
    NETWORKS: 'BASE_MAINNET',
    BASE_MAINNET_RPC_URLS: counters.map((counter) => counter.url).join(','),
  }
  await makeStore(db, settings, payTo)
  const [store] = await db.query<{ id: string }>('select id from stores')
  const ctx: Context = {
    config: readConfig(settings),
    db,
    log: openLog('silent'),
    metrics: openMetrics(),
    now: () => new Date(),
  }
  const base = networks.find(({ caip2 }) => caip2 === network)
  assert(base?.family === 'EVM' && store)
  const nodes = counters.map((counter, i) => ({ url: counter.url, provider: `provider-${i}` }))
  const read = evm.openChain(base, nodes, ctx.now)
  const update = (tx: Transaction, ids: readonly string[], now: Date) => updateStatus(ctx, tx, ids, now)
  const listener = openListener(ctx, read, update)
  const calls = () =>
    counters.flatMap((counter) => [...counter.calls().values()]).reduce((sum, count) => sum + count, 0)

  return {
    name,
    db,
    storeId: store.id,
    calls,
    async follow() {
      const stepsMs: number[] = []
      const deadline = performance.now() + limitMs
      for (let isMore = true; isMore; ) {
        const startedAt = performance.now()
        isMore = (await followOnce(ctx, read, 'bench', listener)) === true || !(await isAtHead(chain, db))
        stepsMs.push(performance.now() - startedAt)
        assert(stepsMs.length < stepsMax && performance.now() < deadline, `${name} stands still`)
      }
      return stepsMs
    },
  }
}

async function isAtHead(chain: Chain, db: Database): Promise<boolean> {
  const head = Number.parseInt(await chain.ask<Hex>('eth_blockNumber', []), 16)
  const [row] = await db.query<{ head_number: string; finalized_number: string }>(
    'select head_number, finalized_number from followers',
  )
  // The follower rarely asks for the finality of a chain with nothing in flight.
  const [waits] = await db.query('select 1 as one from credits where finalized_at is null limit 1')
  const finalized = Number.parseInt(row?.finalized_number ?? '0', 10)
  return (
    Number.parseInt(row?.head_number ?? '0', 10) === head &&
    (waits === undefined || finalized >= head - 2 * blocksToSafe)
  )
}

/** Mines one block in which each payer pays a checkout of its own, which both sides know. */
export async function mineBlock(
  chain: Chain,
  sides: readonly Side[],
  payers: readonly Payer[],
): Promise<void> {
  const now = new Date()
  const paid = payers.map((payer) => ({ ...sign(payer, payTo), checkoutId: newId('ch', '00', now) }))
  for (const side of sides) await insertPaid(side, paid, now)
  const hashes: Hex[] = []
  for (let i = 0; i < paid.length; i += callsPerTransaction) {
    const payments = paid
      .slice(i, i + callsPerTransaction)
      .map((payment) => ({ ...payment, asset: asset.toLowerCase(), marker: null }))
    const data = batchCalldata(payments, gasPerCall)
    const gas = `0x${gasPerTransaction.toString(16)}`
    hashes.push(await chain.ask<Hex>('eth_sendTransaction', [{ from: hand, to: batcher, data, gas }]))
  }
  await chain.ask('evm_mine', [])
  const receipts = await Promise.all(hashes.map((hash) => chain.receipt(hash)))
  const logs = receipts.reduce((sum, receipt) => sum + (receipt?.logs ?? 0), 0)
  assert.equal(logs, 2 * paid.length, 'the block does not carry every payment')
}

export async function mineEmpty(chain: Chain, blocks: number): Promise<void> {
  for (let i = 0; i < blocks; i++) await chain.ask('evm_mine', [])
}

type Paid = ReturnType<typeof sign> & { readonly checkoutId: string }

/** Checkouts that wait for a payment that a settler has sent. */
async function insertPaid({ db, storeId }: Side, paid: readonly Paid[], now: Date): Promise<void> {
  const option = { network, asset, amount: `${units}`, payTo }
  await db.query(
    `with input as (
       select * from json_to_recordset($1) as i (id text, payer text, nonce text, valid_before numeric, signature text)
     ), made as (
       insert into checkouts (id, store_id, order_id, price_amount, price_currency, options, finality, status, version,
         created_at, expires_at)
       select id, $2, 'order-' || id, '0.10', 'USD', $3, 'included', 'PROCESSING', 2, $4, $4::timestamptz + interval '1 day'
       from input
     )
     insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount, valid_after,
       valid_before, signature, claimed_at, sends)
     select $5, $6, payer, nonce, id, $2, 'sent', $7, $8, 0, valid_before, decode(signature, 'hex'), $4, 1 from input`,
    [
      JSON.stringify(
        paid.map(({ authorization, signature, checkoutId }) => ({
          id: checkoutId,
          payer: authorization.from,
          nonce: authorization.nonce,
          valid_before: `${authorization.validBefore}`,
          signature: signature.slice(2),
        })),
      ),
      storeId,
      JSON.stringify([option]),
      now,
      network,
      asset.toLowerCase(),
      payTo.toLowerCase(),
      `${units}`,
    ],
  )
  await db.transaction((tx) => tx.script('analyze checkouts, authorizations, credits, events'))
}
