/** Measures the rows of `providers.ts`, one deployment each. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { openRails } from '../server/src/payments/rails.ts'
import { openReadiness } from '../server/src/payments/settlers/readiness.ts'
import { type Policy, policies, solanaPolicies } from '../server/test/chains/support/policies.ts'
import { openProvider, type Provider } from '../server/test/chains/support/provider.ts'
import { checkInvariants } from '../server/test/payments/adversity/invariants.ts'
import { newPayer } from '../server/test/support/chain/evm-payment.ts'
import { openShop, type Shop, type SvmShop } from '../server/test/support/shop.ts'
import { until } from '../server/test/support/until.ts'
import { quantile, round, say } from './figures.ts'

const isShort = process.env.SHORT === '1'
const only = process.env.ONLY ?? ''
const shortRows = ['quicknodeFree', 'publicProxyd']
/** With more at once, the processor would be the limit. */
const rowsAtOnce = isShort ? 2 : 3
const payments = isShort ? 10 : 50
const paidAtOnce = 5
/** The number of payments after the downtime, and again after the reorganisation. */
const paymentsLater = 2
const downSeconds = isShort ? 5 : 60
const blockSeconds = 0.2
const slotMs = 300
const unread = 600
const reorganised = 3
/** Base is safe after two minutes, final after twenty. */
const behindAtStart = { safe: 600, finalized: 6_000 }
/** Nothing may take longer. */
const limitMs = 300_000
/** A payer comes back when the server says, but not later than this. */
const repeatMsMax = 2_000

type Row = {
  readonly shop: Shop | SvmShop
  readonly providers: readonly Provider[]
  readonly readiness: () => Promise<string | null>
  /** Signs with an account that nothing else uses. */
  readonly sign: (checkoutId: string) => Promise<string>
  readonly repeats: Map<string, number>
}

const kinds = { EVM: policies, Solana: solanaPolicies }
for (const [kind, rows] of Object.entries(kinds))
  describe(kind, { concurrency: rowsAtOnce }, () => {
    for (const [name, policy] of Object.entries<Policy>(rows))
      if (only ? name === only : !isShort || (kind === 'EVM' && shortRows.includes(name)))
        test(name, async () => {
          const opened = kind === 'EVM' ? await openEvmRow(policy) : await openSvmRow(policy)
          say(JSON.stringify({ chain: kind, provider: name, ...(await measure(opened)) }))
        })
  })

async function openEvmRow(policy: Policy): Promise<Row> {
  const providers = [await openProvider('', policy), await openProvider('', policy)]
  const startsAt = Math.floor(Date.now() / 1_000) - unread
  const shop = await openShop({
    ...{ network: 'BASE_MAINNET', blockTimeSeconds: blockSeconds, worker: false },
    extraArgs: ['--timestamp', `${startsAt}`],
    ...{ nodes: providers, settings: { LOG_LEVEL: 'warn' } },
  })
  for (let mined = 0; mined < unread; mined += 50) await shop.chain.client.mine({ blocks: 50, interval: 1 })
  for (const provider of providers) provider.behind = behindAtStart
  const payers = Array.from({ length: payments + paymentsLater }, newPayer)
  await shop.chain.mint(
    payers.map(({ address }) => address),
    2_000_000n,
  )
  const sign = async (id: string) => await shop.sign(id, payers.pop() ?? assert.fail('no payer is left'))
  return toRow(shop, providers, sign)
}

async function openSvmRow(policy: Policy): Promise<Row> {
  const providers = [await openProvider('', policy), await openProvider('', policy)]
  const shop = await openShop({
    ...{ network: 'SOLANA_MAINNET', slotMs, finalizedAfter: 31, worker: false },
    ...{ nodes: providers, settings: { LOG_LEVEL: 'warn' } },
  })
  return toRow(shop, providers, async (id) => await shop.sign(id, await shop.chain.payer(2_000_000n)))
}

function toRow(shop: Shop | SvmShop, providers: readonly Provider[], sign: Row['sign']): Row {
  const readiness = openReadiness(shop.ctx, openRails(shop.ctx))
  return { shop, providers, readiness: () => readiness(shop.chain.network.caip2), sign, repeats: new Map() }
}

async function measure(row: Row) {
  const { shop, providers } = row
  let stop = shop.startWork()
  const startS = await timed(() =>
    until('payments are accepted', async () => (await row.readiness()) === null, limitMs),
  )
  for (const provider of providers) provider.behind = null
  const ids = await Promise.all(Array.from({ length: payments }, () => shop.create()))
  const callsBefore = countCalls(providers)
  const waits = await payAll(row, ids)
  const calls = (countCalls(providers) - callsBefore) / providers.length / payments
  const finalS = await timed(() => untilFinal(row, ids))

  await stop()
  await wait(downSeconds * 1_000)
  const downtimeS = await timed(async () => {
    stop = shop.startWork()
    await payOne(row, await shop.create())
  })
  const reorgS = await timed(async () => {
    await reorganise(shop)
    await payOne(row, await shop.create())
  })
  if ('token' in shop.chain) await checkInvariants({ db: shop.ctx.db, chain: shop.chain, withinMs: limitMs })
  await stop()
  return {
    paid: waits.length,
    p99: round(quantile(waits, 0.99) / 1_000, 1),
    p50: round(quantile(waits, 0.5) / 1_000, 1),
    repeats: Object.fromEntries(row.repeats),
    calls: round(calls, 1),
    ...{ finalS, startS, downtimeS, reorgS },
    limited: sum(providers.map(({ limited }) => limited)),
    refused: sum(providers.map(({ refused }) => refused)),
  }
}

/** Pays checkouts a few at a time. Returns how long each took. */
async function payAll(row: Row, ids: readonly string[]): Promise<number[]> {
  const waits: number[] = []
  const left = [...ids]
  const payNext = async () => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) waits.push(await payOne(row, id))
  }
  await Promise.all(Array.from({ length: paidAtOnce }, payNext))
  return waits
}

/** Pays as a client does that repeats its request. Returns how many milliseconds that took. */
async function payOne({ shop, sign, repeats }: Row, id: string): Promise<number> {
  let header: string | null = null
  let startedAt = 0
  for (;;) {
    // A request without a payment gets the terms, or the answer that no payment is accepted now.
    const asked = await shop.pay(id)
    if (asked.statusCode === 402) header ??= await sign(id)
    startedAt ||= performance.now()
    const answer = header === null ? asked : await shop.pay(id, header)
    if (answer.statusCode === 200) return performance.now() - startedAt
    const { error, code } = answer.json() as { readonly error?: string; readonly code?: string }
    const isExpired = answer.statusCode === 402 && error === 'blockhash_expired'
    assert(isExpired || [202, 503].includes(answer.statusCode), `${answer.statusCode}: ${answer.body}`)
    assert(performance.now() - startedAt < limitMs, `a payment is stuck: ${answer.body}`)
    const what = `${answer.statusCode} ${error ?? code ?? ''}`.trim()
    repeats.set(what, (repeats.get(what) ?? 0) + 1)
    if (isExpired) header = null
    const retryMs = Number.parseInt(String(answer.headers['retry-after'] ?? '1'), 10) * 1_000
    await wait(Math.min(retryMs, repeatMsMax))
  }
}

async function untilFinal({ shop }: Row, ids: readonly string[]): Promise<void> {
  await until(
    'all payments are final',
    async () => {
      const [row] = await shop.ctx.db.query<{ final: number }>(
        `select count(*)::int as final from credits where finalized_at is not null and orphaned_at is null
           and checkout_id = any($1)`,
        [ids],
      )
      return row?.final === ids.length
    },
    limitMs,
  )
}

async function reorganise({ chain }: Shop | SvmShop): Promise<void> {
  if ('fork' in chain) chain.fork(reorganised)
  else await chain.reorg(reorganised)
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return round((performance.now() - startedAt) / 1_000, 1)
}

function countCalls(providers: readonly Provider[]): number {
  return sum(providers.flatMap(({ asked }) => [...asked.values()]))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}
