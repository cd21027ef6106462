/** What Solana's providers are asked for, as often as on a live network: they charge for each call. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openFaultyNode } from '../../support/faulty-node.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

const perMonthMax = 500_000
const perPaymentMax = 30
const monthSeconds = 30 * 86_400

const nodes = [await openFaultyNode(''), await openFaultyNode('')]
const shop = await openShop({
  network: 'SOLANA_MAINNET',
  slotMs: 400,
  finalizedAfter: 31,
  nodes,
  isSparing: true,
})
const { ctx, clock } = shop

/** Calls so far, by method, to the provider that was asked for more. */
function asked(): Map<string, number> {
  const count = (of: ReadonlyMap<string, number>) => [...of.values()].reduce((sum, one) => sum + one, 0)
  const [most = assert.fail()] = nodes.toSorted((a, b) => count(b.asked) - count(a.asked))
  return new Map(most.asked)
}

function since(before: ReadonlyMap<string, number>): { calls: number; methods: Record<string, number> } {
  const more = [...asked()].map(([method, count]) => [method, count - (before.get(method) ?? 0)] as const)
  const methods = Object.fromEntries(more.filter(([, count]) => count > 0))
  return { calls: more.reduce((sum, [, count]) => sum + count, 0), methods }
}

/** Lets the time of the process pass, and the watch look once more if that is due. */
async function pass(seconds: number): Promise<void> {
  const leasedUntil = async () => {
    const [row] = await ctx.db.query<{ until: string }>('select leased_until::text as until from followers')
    return row?.until
  }
  clock.now = new Date((clock.now ?? new Date()).getTime() + seconds * 1_000)
  // A run may have begun before. The one after it is over when the next one begins.
  for (const _ of [1, 2, 3]) {
    const before = await leasedUntil()
    await until('the watch runs', async () => (await leasedUntil()) !== before)
  }
}

test('while nothing happens, no provider is asked for more than half a million calls per month', async (t) => {
  const [stepSeconds, steps] = [10, 30]
  await pass(0)
  const before = asked()
  for (let step = 0; step < steps; step++) await pass(stepSeconds)
  const { calls, methods } = since(before)
  const perMonth = calls * (monthSeconds / (stepSeconds * steps))
  t.diagnostic(JSON.stringify({ perMonth, methods }))
  assert(perMonth <= perMonthMax, `${perMonth} calls per month`)
  // It does look: payments are refused when the head is older than half a minute.
  assert((methods.getEpochInfo ?? 0) >= (2 * stepSeconds * steps) / 30)
})

test('a payment takes at most thirty calls to a provider until it is final', async (t) => {
  const id = await shop.create()
  const header = await shop.sign(id, await shop.chain.payer())
  clock.now = null
  const before = asked()
  const answer = await shop.pay(id, header)
  assert.equal(answer.statusCode, 200, answer.body)
  shop.chain.mine(40)
  await pass(shop.chain.network.lookEveryMs.unsettled / 1_000 + 1)
  await until('it is final', async () => (await shop.read(id)).payment.finality === 'finalized')
  const { calls, methods } = since(before)
  t.diagnostic(JSON.stringify({ calls, methods }))
  assert(calls <= perPaymentMax, `${calls} calls for a payment`)
  // Nothing was missing, so nobody searched their history.
  assert.equal((await shop.read(id)).status, 'COMPLETED')
})
