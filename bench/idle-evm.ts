/** Measures the EVM part of `idle.ts`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { monthSeconds } from '../server/src/chains/plans.ts'
import { openProvider } from '../server/test/chains/support/provider.ts'
import { newPayer } from '../server/test/support/chain/evm-payment.ts'
import { openShop } from '../server/test/support/shop.ts'
import { until } from '../server/test/support/until.ts'
import { round, say } from './figures.ts'

const isShort = process.env.SHORT === '1'
/** What an idle chain is asked least often is asked every ten minutes. */
const idleSeconds = isShort ? 90 : 600
const awakeSeconds = isShort ? 20 : 60
const payments = isShort ? 5 : 20
/** The first looks after a start ask for more than later ones. */
const looksBefore = 3
const pauseMs = 120_000

test('what the providers of an EVM chain are asked for', async () => {
  const providers = [await openProvider(''), await openProvider('')]
  const shop = await openShop({
    ...{ network: 'BASE_MAINNET', blockTimeSeconds: 0.2, worker: false },
    ...{ nodes: providers, settings: { LOG_LEVEL: 'warn' } },
  })
  const readHead = async () => {
    const [row] = await shop.ctx.db.query<{ head: string }>('select head_number as head from followers')
    return row?.head
  }
  const ids = await Promise.all(Array.from({ length: payments }, () => shop.create()))
  const payers = ids.map(newPayer)
  await shop.chain.mint(
    payers.map(({ address }) => address),
    2_000_000n,
  )
  shop.startWork()
  for (let i = 0; i < looksBefore; i++) {
    const head = await readHead()
    await until('a look', async () => (await readHead()) !== head, pauseMs)
  }
  const countDuring = async (work: () => Promise<unknown>) => {
    const before = providers.map(({ asked }) => new Map(asked))
    await work()
    const counts = providers.map(({ asked }, i) =>
      Object.fromEntries(
        [...asked].map(([method, count]) => [method, count - (before[i]?.get(method) ?? 0)] as const),
      ),
    )
    const [most = assert.fail('there is no provider')] = counts.toSorted((a, b) => sum(b) - sum(a))
    return most
  }
  const idle = await countDuring(() => wait(idleSeconds * 1_000))
  // This wakes the chain.
  const headers = await Promise.all(
    ids.map(async (id, i) => await shop.sign(id, payers[i] ?? assert.fail('nobody is left'))),
  )
  const head = await readHead()
  await until('a look', async () => (await readHead()) !== head, pauseMs)
  const awake = await countDuring(() => wait(awakeSeconds * 1_000))
  const paying = await countDuring(async () => {
    for (const [i, id] of ids.entries()) {
      const answer = await shop.pay(id, headers[i])
      assert.equal(answer.statusCode, 200, answer.body)
    }
  })
  const methods = scale(idle, monthSeconds / idleSeconds, 0)
  const methodsAwake = scale(awake, 60 / awakeSeconds, 1)
  const methodsPerPayment = scale(paying, 1 / payments, 1)
  say(
    JSON.stringify({
      callsPerMonthIdle: sum(methods),
      callsPerPayment: round(sum(methodsPerPayment), 1),
      callsPerMinuteAwake: round(sum(methodsAwake), 0),
      ...{ methods, methodsAwake, methodsPerPayment },
    }),
  )
})

function scale(counts: Readonly<Record<string, number>>, by: number, digits: number): Record<string, number> {
  const scaled = Object.entries(counts).map(([method, count]) => [method, round(count * by, digits)] as const)
  return Object.fromEntries(scaled.filter(([, count]) => count > 0))
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}
