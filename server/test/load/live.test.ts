/**
 * Many pages are open on one process while payments are credited: every page is notified within a second. The test feeds
 * the credits in where the follower does, so that no chain limits their rate. FULL=1: 5,000 pages, 100 credits per second.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type ClientRequest, request } from 'node:http'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Hex } from 'viem'
import { type ChainLog, openChain } from '../../src/chains/evm/chain.ts'
import { topics } from '../../src/chains/evm/eip3009.ts'
import { updateStatus } from '../../src/checkouts/update-status.ts'
import { networks } from '../../src/networks.ts'
import { openListener } from '../../src/payments/evm/credit-blocks.ts'
import { openTestApp } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { watchPauses } from '../support/pauses.ts'
import { startProcess } from '../support/process.ts'
import { openStore } from '../support/store.ts'
import { until } from '../support/watch.ts'

const isFull = process.env.FULL === '1'
const pages = isFull ? 5_000 : 600
const creditsPerSecond = isFull ? 100 : 60
/** The server looks every 0.1 s, so 1 s is ample. Without FULL, allow for a busy machine that stalls for longer. */
const withinMs = isFull ? 1_000 : 5_000
const pauses = watchPauses()

const farthing = await openTestApp({ NETWORKS: 'BASE_SEPOLIA' })
const { ctx } = farthing
const shop = await openStore(farthing, { mode: 'test' })
const network = networks.find(({ caip2 }) => caip2 === 'eip155:84532')
assert(network?.family === 'EVM')
const listener = openListener(ctx, openChain(network, [], ctx.now), (tx, ids, now) =>
  updateStatus(ctx, tx, ids, now),
)
const serve = await startProcess('serve', {
  DATABASE_URL: farthing.databaseUrl,
  CHECKOUT_PAGE_URL: 'https://pay.farthing.example/c',
  NETWORKS: 'BASE_SEPOLIA',
  ADDRESS_REQUESTS_PER_SECOND: '1000000',
  LIVE_CONNECTIONS_PER_ADDRESS: '1000000',
})
const open: ClientRequest[] = []
atEnd(() => {
  for (const each of open) each.destroy()
})

type Claim = { checkoutId: string; asset: Hex; payer: Hex; nonce: Hex; payTo: Hex; amount: bigint }

/** Creates checkouts whose payments have been sent. */
async function makeClaims(): Promise<Claim[]> {
  for (let at = 0; at < pages; at += 200)
    await Promise.all(Array.from({ length: Math.min(200, pages - at) }, () => shop.create()))
  await ctx.db.query("update checkouts set status = 'PROCESSING', version = 2")
  const rows = await ctx.db.query<Omit<Claim, 'amount'> & { amount: string }>(
    `insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount, valid_after,
       valid_before, signature, claimed_at)
     select o.network, lower(o.asset), '0x' || lpad(to_hex(row_number() over ()), 40, '0'),
       '0x' || lpad(to_hex(row_number() over ()), 64, '0'), c.id, c.store_id, 'sent', lower(o."payTo"), o.amount, 0, 1, '',
       clock()
     from checkouts c, json_to_recordset(c.options) as o (network text, asset text, amount numeric, "payTo" text)
     returning checkout_id as "checkoutId", asset, payer, nonce, pay_to as "payTo", amount`,
  )
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount) }))
}

/** When each page was notified of its payment, by this process's clock. */
const toldAt = new Map<string, number>()

async function openPage(checkoutId: string): Promise<void> {
  const asked = request(`${serve.started.address}/c/${checkoutId}/live`, { agent: false })
  open.push(asked)
  asked.on('error', () => {})
  await new Promise<void>((resolve, reject) => {
    asked.once('error', reject)
    asked.once('response', (response) => {
      assert.equal(response.statusCode, 200)
      response.setEncoding('utf8')
      response.on('error', () => {})
      response.on('data', (chunk: string) => {
        if (chunk.includes('"COMPLETED"')) toldAt.set(checkoutId, performance.now())
        else resolve()
      })
    })
    asked.end()
  })
}

const word = (hex: string): Hex => `0x${hex.slice(2).padStart(64, '0')}`

function logsOf(claims: readonly Claim[], blockHash: Hex): ChainLog[] {
  return claims.flatMap(({ asset, payer, nonce, payTo, amount }, i) => {
    const place = { address: asset, blockHash, transactionHash: word(nonce) }
    return [
      {
        ...place,
        logIndex: 2 * i,
        topics: [topics.authorizationUsed, word(payer), nonce],
        data: '0x' as Hex,
      },
      {
        ...place,
        logIndex: 2 * i + 1,
        topics: [topics.transfer, word(payer), word(payTo)],
        data: word(`0x${amount.toString(16)}`),
      },
    ]
  })
}

test(`with ${pages} pages on one process and ${creditsPerSecond} credits per second, each page is notified within ${withinMs} ms`, async (t) => {
  const claims = await makeClaims()
  for (let at = 0; at < claims.length; at += 100)
    await Promise.all(claims.slice(at, at + 100).map(({ checkoutId }) => openPage(checkoutId)))
  assert.equal(open.length, pages)

  const committedAt = new Map<string, number>()
  const begun = performance.now()
  // Two blocks per second, each in its own transaction, as in the follower.
  const perBlock = creditsPerSecond / 2
  for (let number = 1; committedAt.size < claims.length; number++) {
    const paid = claims.slice((number - 1) * perBlock, number * perBlock)
    const hash: Hex = `0x${randomBytes(32).toString('hex')}`
    const block = { number, hash, parentHash: hash, time: new Date(), baseFee: 0n }
    await ctx.db.transaction((tx) =>
      listener.onBlock(tx, block, logsOf(paid, hash), {
        isWitnessed: true,
        isDoubted: false,
        isAgain: false,
      }),
    )
    const at = performance.now()
    listener.onCommit()
    for (const { checkoutId } of paid) committedAt.set(checkoutId, at)
    await wait(Math.max(0, begun + number * 500 - performance.now()))
  }
  const seconds = (performance.now() - begun) / 1_000
  await until(async () => toldAt.size === claims.length, 'the notification of every page')

  const delays = [...committedAt]
    .map(([checkoutId, at]) => (toldAt.get(checkoutId) ?? Number.POSITIVE_INFINITY) - at)
    .sort((a, b) => a - b)
  const at = (share: number) => Math.round(delays[Math.floor(share * (delays.length - 1))] ?? 0)
  const rate = Math.round(claims.length / seconds)
  t.diagnostic(
    JSON.stringify({ pages, creditsPerSecond: rate, medianMs: at(0.5), p99Ms: at(0.99), maxMs: at(1) }),
  )
  assert(at(1) <= withinMs + pauses(), `one page was notified after ${at(1)} ms`)
  assert(
    rate >= (0.9 * creditsPerSecond * seconds) / (seconds + pauses() / 1_000),
    `only ${rate} credits per second were fed in`,
  )
})
