/** What doctor finds out about a provider before a payer does. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { probeChain } from '../../src/chains/evm/probe.ts'
import { probeSvmChain } from '../../src/chains/svm/probe.ts'
import { parseNode } from '../../src/config/parse.ts'
import { openChain } from '../support/chain/open.ts'
import { type Policy, policies } from './support/policies.ts'
import { openProvider } from './support/provider.ts'

const chain = await openChain({ network: 'BASE_MAINNET' })
await chain.client.mine({ blocks: 300, interval: 2 })
const svm = await openChain({ network: 'SOLANA_LOCAL' })

async function probe(policy: Policy, limits = '') {
  const provider = await openProvider(chain.url, policy)
  const node = parseNode(`node=${provider.url}${limits}`)
  const [probed] = await probeChain(chain.network, [node], () => new Date())
  assert(probed)
  return { ...probed, provider }
}

async function probeSvm(policy: Policy) {
  const provider = await openProvider(svm.url, policy)
  const [probed] = await probeSvmChain(svm.network, [parseNode(`node=${provider.url}`)], () => new Date())
  assert(probed)
  return probed
}

describe('a provider that can do everything has no troubles', () => {
  for (const [name, policy] of Object.entries(policies))
    test(`as ${name} allows`, async (t) => {
      const { says, troubles, provider } = await probe(policy)
      t.diagnostic(`${says} (${provider.requests} requests)`)
      assert.deepEqual(troubles, [])
      assert.match(says, /safe after \d+ s, finalized after \d+ s; state of the last 256 blocks and more/)
    })

  test('one request for what is asked often, one for logs, two for state', async () => {
    const { provider } = await probe({})
    assert.equal(provider.requests, 4)
  })
})

describe('limits are found', () => {
  test('of calls per request', async () => {
    const { says } = await probe({ callsMax: 3, refusal: 'status-400' })
    assert.match(says, /^2 calls per request;/)
  })

  test('of a single method that must be alone, and others are not blamed', async () => {
    const { says } = await probe({ aloneOnly: ['eth_getTransactionCount'], refusal: 'status-400' })
    assert.match(says, /^1 call per request of eth_getTransactionCount;/)
    const { provider } = await probe(
      { aloneOnly: ['eth_getTransactionCount'] },
      '#alone=eth_getTransactionCount',
    )
    assert.equal(provider.refused, 0)
  })

  test('of blocks per question', async () => {
    const { says } = await probe({ blocksMax: 10 })
    assert.match(says, /^logs of 9 blocks per question;/)
  })

  test('and so is that there is no pending block, which is no trouble', async () => {
    const { says, troubles } = await probe({ refusedTags: ['pending'] })
    assert.match(says, /no pending block, which is not needed$/)
    assert.deepEqual(troubles, [])
  })
})

describe('a provider with which payments would not complete is named with what another must be able to do', () => {
  const cases: readonly (readonly [string, Policy, RegExp, RegExp])[] = [
    [
      'no tags, told by errors',
      { refusedTags: ['safe', 'finalized'] },
      /tag safe and finalized, so it confirms nothing as final/,
      /for the tags safe and finalized/,
    ],
    [
      'no tags, told by null',
      { refusedTags: ['finalized'], tagRefusal: 'null' },
      /tag finalized, so it confirms/,
      /for the tags/,
    ],
    [
      'headers without bloom',
      { headerLacks: ['logsBloom'] },
      /headers lack logsBloom, .* no witness/,
      /headers on whole/,
    ],
    [
      'headers without a field of a fork',
      { headerLacks: ['withdrawalsRoot'] },
      /headers lack withdrawalsRoot/,
      /headers on whole/,
    ],
    ['no logs', { refusedMethods: ['eth_getLogs'] }, /refuses to tell the logs of a range/, /eth_getLogs/],
    ['state of two blocks', { stateKept: 2 }, /state of the last 2 s only/, /more than 24 s/],
  ]
  for (const [name, policy, says, wanted] of cases)
    test(name, async () => {
      const { troubles } = await probe(policy)
      assert.match(troubles[0]?.says ?? '', says)
      assert.match(troubles[0]?.wanted ?? '', wanted)
    })

  test('a node that does not answer', async () => {
    const { network } = chain
    const [probed] = await probeChain(network, [parseNode('node=http://127.0.0.1:9/KEY')], () => new Date())
    assert.match(probed?.troubles[0]?.says ?? '', /127\.0\.0\.1:9/)
    assert(!JSON.stringify(probed).includes('KEY'))
  })
})

describe('a provider of Solana', () => {
  test('that can do everything has no troubles', async () => {
    const { says, troubles } = await probeSvm({})
    assert.deepEqual(troubles, [])
    assert.match(says, /^no limits found; finalized after \d+ slots$/)
  })

  test('that takes no batches of one method is no trouble', async () => {
    const policy = { aloneOnly: ['getSignaturesForAddress'], refusal: 'status-400' } as const
    const { says, troubles } = await probeSvm(policy)
    assert.deepEqual(troubles, [])
    assert.match(says, /^1 call per request of getSignaturesForAddress;/)
  })

  test('that refuses a call is named with what is lost', async () => {
    const { troubles } = await probeSvm({ refusedMethods: ['getTransaction'] })
    assert.match(troubles[0]?.says ?? '', /^refuses getTransaction .*, so no payment is confirmed$/)
  })
})
