import assert from 'node:assert/strict'
import { test } from 'node:test'
import { evmCosts } from './evm/costs.ts'
import { describeCalls, describePlan, priceOf } from './plans.ts'
import { svmCosts } from './svm/costs.ts'

test('an operator is told what following a network takes of the free plan of a known provider, and nothing of others', () => {
  assert.match(
    describePlan(evmCosts, 'base-mainnet.g.alchemy.com') ?? '',
    /^following the network takes \d\d % of Alchemy’s free plan, the rest is enough for about \d+ hours in which somebody looks at a checkout \(prices of \w+ \d{4}\)$/,
  )
  assert.match(describePlan(svmCosts, 'mainnet.helius-rpc.com') ?? '', /of Helius’s free plan/)
  for (const host of ['alchemy.com.example', 'notalchemy.com', '127.0.0.1:8545', 'mainnet.helius-rpc.com'])
    assert.equal(describePlan(evmCosts, host), null)
})

test('a plan that an idle month exceeds is called too small, and no other', () => {
  for (const costs of [evmCosts, svmCosts])
    for (const { provider, hosts } of costs.plans) {
      const says = describePlan(costs, `node${hosts[0]}`) ?? ''
      const [, percent = '', rest = ''] =
        new RegExp(`takes (\\d+) % of ${provider}’s free plan, (.*) \\(prices`).exec(says) ?? []
      assert.notEqual(percent, '', says)
      if (Number.parseInt(percent, 10) > 100) assert.equal(rest, 'so it needs a paid one')
      if (Number.parseInt(percent, 10) < 100) assert.match(rest, /^the rest is enough for about/)
    }
})

test('the number of calls is said in round figures', () => {
  assert.match(
    describeCalls(evmCosts),
    /^about \d{3},000 a month to each provider while nobody pays, [\d,]+00 an hour while somebody looks at a checkout, and \d\d for a payment$/,
  )
})

test('a method without a price of its own costs the provider’s usual one', () => {
  const [alchemy = assert.fail()] = evmCosts.plans
  assert.equal(priceOf({ eth_getLogs: 2, eth_chainId: 100, eth_getBalance: 3 }, alchemy), 2 * 60 + 3 * 20)
})
