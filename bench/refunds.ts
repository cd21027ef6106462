/**
 * A store refunds 1,000 payments by the SDK, with its own signer, while buyers go on paying: `npm run bench:refunds`, or
 * `-- --short` for 100 of them.
 *
 * One `serve` and one `work` process on a private PostgreSQL (fsync on), one settler, anvil with 2-second blocks. First
 * the payments to refund are made and become final. Then the same small load of payments runs without refunds, during
 * the refunds, and without them again. All refunds must be COMPLETED, each recipient must have the money back once, and
 * the store's wallet must hold the rest.
 *
 * - p99Ratio: the 99th percentile of payments beside refunds, divided by that of both rounds without. At most 1.5.
 * - gasPerRefund: gas of the transactions that carry refunds, divided by the calls in them.
 * - seconds: from the first request until the last refund is COMPLETED.
 * The exit code is 1 if a refund is not done or the ratio is higher. Absolute figures from a busy machine are not
 * comparable.
 */
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { createClient, type Refund } from '@farthing/sdk'
import type { Hex } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { median, quantile, round, say } from './figures.ts'
import { meterSettings, watchSteal } from './meter.ts'
import { type Chain, onChain, type Payer, units } from './pay-chain.ts'
import { type Load, pay, type Ready } from './pay-load.ts'
import { type Ours, openOurs } from './pay-sides.ts'
import { onStand, type Stand } from './stand.ts'

const { values: options } = parseArgs({ options: { short: { type: 'boolean', default: false } } })
const refunds = options.short ? 100 : 1_000
/** Payments of each round of the small load; enough for a 99th percentile. */
const payments = options.short ? 120 : 400
const inFlight = 20
const warmPayments = 25
const paidAtOnce = 200
/** How many refunds the store asks for, signs and follows at a time. */
const refundsAtOnce = 10
const payLimitMs = 240_000
const refundWaitMs = 240_000
const p99RatioMax = 1.5
/** anvil's second account, which is the wallet of `openOurs`. Its key is public. */
const wallet = mnemonicToAccount('test test test test test test test test test test test junk', {
  addressIndex: 1,
})

await onStand('1GB', (stand) => onChain((chain) => measure(chain, stand)), meterSettings)
// Sockets of killed processes may still be closing.
process.exit()

async function measure(chain: Chain, stand: Stand): Promise<void> {
  const readSteal = watchSteal()
  const ours = await openOurs(chain, stand)
  assert.equal(ours.payTo, wallet.address)
  const client = createClient({ baseUrl: ours.address, apiKey: ours.apiKey })
  await proveWallet(client)
  const payers = await chain.fundedPayers(warmPayments + refunds + 3 * payments)
  const take = (count: number) => payers.splice(0, count)
  await payAll(ours, take(warmPayments))
  const refunded = take(refunds)
  await payAll(ours, refunded)
  await ours.settleDown()
  tell(`${refunds} payments are final`)

  const before = await payAll(ours, take(payments))
  await ours.settleDown()
  const beside = await ours.prepare(take(payments))
  const startedAt = performance.now()
  const [done, during] = await Promise.all([refundAll(client, refunded), payReady(beside)])
  const seconds = (performance.now() - startedAt) / 1_000
  await ours.settleDown()
  const after = await payAll(ours, take(payments))

  await judge(chain, ours, done, refunded)
  const alone = [...before.latenciesMs, ...after.latenciesMs]
  const gas = await readGas(chain, ours)
  const steal = readSteal()
  if (steal.warning) tell(steal.warning)
  const p99 = { alone: quantile(alone, 0.99), beside: quantile(during.latenciesMs, 0.99) }
  const p99Ratio = round(p99.beside / p99.alone, 2)
  say(`${'payments'.padStart(24)}${'p50 ms'.padStart(10)}${'p99 ms'.padStart(10)}`)
  for (const [what, latenciesMs] of [
    ['without refunds', alone],
    ['beside refunds', during.latenciesMs],
  ] as const)
    say(
      `${what.padStart(24)}${`${Math.round(median(latenciesMs))}`.padStart(10)}${`${Math.round(quantile(latenciesMs, 0.99))}`.padStart(10)}`,
    )
  say(`gas per refund: ${gas.perRefund} in ${gas.transactions} transactions that carry refunds`)
  say(
    JSON.stringify({
      refunds: done.length,
      seconds: round(seconds, 1),
      refundsPerSecond: round(done.length / seconds, 1),
      gasPerRefund: gas.perRefund,
      p99Ratio,
      p99AloneMs: Math.round(p99.alone),
      p99BesideMs: Math.round(p99.beside),
      stealPercent: steal.stealPercent,
    }),
  )
  await ours.db.close()
  if (p99Ratio > p99RatioMax) process.exitCode = 1
}

async function proveWallet({ wallets }: ReturnType<typeof createClient>): Promise<void> {
  const [own] = (await wallets.list().page()).data
  assert(own)
  const { message } = await wallets.challenge(own.id)
  await wallets.prove(own.id, { signature: await wallet.signMessage({ message }) })
}

async function payAll(ours: Ours, payers: readonly Payer[]): Promise<Load> {
  return await payReady(await ours.prepare(payers))
}

async function payReady(ready: readonly Ready[]): Promise<Load> {
  const load = await pay(ready, ready.length > payments ? paidAtOnce : inFlight, payLimitMs)
  assert.equal(load.paid.length, ready.length, `not all paid: ${JSON.stringify([...load.answers])}`)
  return load
}

/** Does what a store's program does: finds each buyer's payment, requests the refund, signs it and waits for it. */
async function refundAll(
  client: ReturnType<typeof createClient>,
  payers: readonly Payer[],
): Promise<Refund[]> {
  const done: Refund[] = []
  const left = [...payers]
  const goOn = async () => {
    for (let payer = left.pop(); payer; payer = left.pop()) {
      const [payment] = (await client.payments.list({ payer: payer.address }).page()).data
      assert(payment)
      const { id, amount, recipient } = await client.refunds.create(payment.id)
      assert.equal(recipient?.toLowerCase(), payer.address)
      const terms = { amount, recipient: recipient ?? '' }
      done.push(await client.refunds.sign(id, wallet, terms, { waitMs: refundWaitMs }))
      if (done.length % 100 === 0) tell(`${done.length} refunds`)
    }
  }
  await Promise.all(Array.from({ length: refundsAtOnce }, goOn))
  return done
}

async function judge(
  chain: Chain,
  ours: Ours,
  done: readonly Refund[],
  refunded: readonly Payer[],
): Promise<void> {
  const open = done.filter(({ status }) => status !== 'COMPLETED')
  assert.deepEqual(open, [], `${open.length} refunds are not done`)
  assert.equal(done.length, refunds)
  assert.equal(await chain.countPaid(refunded), 0, 'a buyer did not get the money back')
  const kept = BigInt(warmPayments + 3 * payments) * units
  assert.equal(await chain.balance(ours.payTo), kept, 'the store’s wallet does not hold the rest')
}

/** Refunds share transactions with payments, so a transaction's gas is shared by its calls. */
async function readGas(chain: Chain, { db }: Ours): Promise<{ perRefund: number; transactions: number }> {
  const rows = await db.query<{ hashes: Hex[]; calls: number; refunds: number }>(
    `select array_agg(distinct b.hash) as hashes, count(distinct (c.payer, c.nonce))::int as calls,
       count(distinct (c.payer, c.nonce)) filter (where a.refund_id is not null)::int as refunds
     from transaction_calls c join authorizations a on a.network = c.network and a.asset = c.asset and a.payer = c.payer
       and a.nonce = c.nonce
     join broadcasts b on b.network = c.network and b.settler = c.settler and b.nonce = c.settler_nonce
     group by c.settler, c.settler_nonce having bool_or(a.refund_id is not null)`,
  )
  let gas = 0
  let count = 0
  for (const { hashes, calls, refunds: own } of rows) {
    // A transaction that was replaced has several hashes, of which one is mined.
    const receipts = await Promise.all(hashes.map((hash) => chain.receipt(hash)))
    const mined = receipts.find((receipt) => receipt !== null)
    if (!mined) continue
    gas += (Number.parseInt(mined.gasUsed.toString(), 10) / calls) * own
    count += own
  }
  return { perRefund: Math.round(gas / Math.max(1, count)), transactions: rows.length }
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}
