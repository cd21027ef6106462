/** Measures what `wait.ts` prints. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type Hex, keccak256 } from 'viem'
import { openProvider } from '../server/test/chains/support/provider.ts'
import { atEnd } from '../server/test/support/at-end.ts'
import { newPayer } from '../server/test/support/chain/evm-payment.ts'
import type { Call } from '../server/test/support/faulty-node.ts'
import { openShop, type Shop } from '../server/test/support/shop.ts'
import { quantile, round, say } from './figures.ts'

const isShort = process.env.SHORT === '1'
const latencyMs = Number.parseInt(process.env.LATENCY_MS ?? '150', 10)
const payments = isShort ? 10 : 100
const paidAtOnce = 5
/** Payers come at any time between two looks at the chain. */
const pauseMsMax = 1_000
const parts = ['verify', 'queue', 'send', 'mined', 'seen', 'answered'] as const

/** When each happened, in milliseconds. */
type Times = Record<'asked' | (typeof parts)[number], number>

test('how long a buyer waits', async () => {
  const sent = new Map<Hex, number>()
  const providers = [await openProvider(''), await openProvider('')]
  for (const provider of providers) {
    provider.latencyMs = latencyMs
    provider.answerRequest = (calls) => {
      noteSent(sent, calls)
      return null
    }
  }
  const shop = await openShop({
    ...{ network: 'BASE_MAINNET', blockTimeSeconds: 0.2 },
    ...{ nodes: providers, settings: { LOG_LEVEL: 'warn' } },
  })
  const mined = watchBlocks(shop)
  const payers = Array.from({ length: 2 * payments + 1 }, newPayer)
  await shop.chain.mint(
    payers.map(({ address }) => address),
    2_000_000n,
  )
  const pay = async () => {
    const id = await shop.create()
    const header = await shop.sign(id, payers.pop() ?? assert.fail('nobody is left'))
    await wait(Math.random() * pauseMsMax)
    const asked = Date.now()
    const answer = await shop.pay(id, header)
    const answered = Date.now()
    assert.equal(answer.statusCode, 200, answer.body)
    return await readTimes(shop, id, { asked, answered, sent, mined })
  }
  // What is asked once per process.
  await pay()
  const alone: Times[] = []
  while (alone.length < payments) alone.push(await pay())
  const together: Times[] = []
  let begun = 0
  const payNext = async () => {
    while (begun++ < payments) together.push(await pay())
  }
  await Promise.all(Array.from({ length: paidAtOnce }, payNext))
  const rows = { alone: summarise(alone), together: summarise(together) }
  for (const [name, row] of Object.entries(rows)) say(`${name}: ${JSON.stringify(row)}`)
  say(JSON.stringify({ latencyMs, payments, ...rows }))
})

function noteSent(sent: Map<Hex, number>, calls: readonly Call[]): void {
  for (const { method, params } of calls) {
    if (method !== 'eth_sendRawTransaction') continue
    const hash = keccak256(params[0] as Hex)
    sent.set(hash, sent.get(hash) ?? Date.now())
  }
}

/** Records when each block appears. */
function watchBlocks({ chain }: Shop): ReadonlyMap<number, number> {
  const times = new Map<number, number>()
  let isOver = false
  atEnd(() => {
    isOver = true
  })
  void (async () => {
    for (let last = 0; !isOver; await wait(5)) {
      const number = Number(await chain.client.getBlockNumber({ cacheTime: 0 }))
      for (let i = last + 1; i <= number; i++) times.set(i, Date.now())
      last = number
    }
  })().catch((error) => {
    if (!isOver) throw error
  })
  return times
}

type Seen = {
  readonly asked: number
  readonly answered: number
  readonly sent: ReadonlyMap<Hex, number>
  readonly mined: ReadonlyMap<number, number>
}

async function readTimes(shop: Shop, id: string, { asked, answered, sent, mined }: Seen): Promise<Times> {
  const [row] = await shop.ctx.db.query<{
    claimed: number
    signed: number
    hash: Hex
    block: string
    completed: number
  }>(
    `select extract(epoch from a.claimed_at)::float8 * 1000 as claimed, k.transaction_hash as hash,
       extract(epoch from b.created_at)::float8 * 1000 as signed, k.block_number as block,
       extract(epoch from e.created_at)::float8 * 1000 as completed
     from authorizations a join credits k on k.checkout_id = a.checkout_id and k.orphaned_at is null
     join broadcasts b on b.hash = k.transaction_hash
     join events e on e.checkout_id = a.checkout_id and e.type = 'checkout.completed'
     where a.checkout_id = $1`,
    [id],
  )
  assert(row)
  return {
    asked,
    verify: row.claimed,
    queue: row.signed,
    send: sent.get(row.hash) ?? assert.fail('it was not sent'),
    mined: mined.get(Number.parseInt(row.block, 10)) ?? assert.fail('it is in no block'),
    seen: row.completed,
    answered,
  }
}

function summarise(times: readonly Times[]) {
  const quantiles = (of: (time: Times) => number) => {
    const all = times.map(of)
    return { p50: round(quantile(all, 0.5), 0), p99: round(quantile(all, 0.99), 0) }
  }
  const split = parts.map((part, i) => {
    const before = parts[i - 1] ?? 'asked'
    return [part, quantiles((time) => time[part] - time[before])] as const
  })
  return { ...quantiles(({ asked, answered }) => answered - asked), parts: Object.fromEntries(split) }
}
