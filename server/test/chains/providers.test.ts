import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openChain as openOurs } from '../../src/chains/evm/chain.ts'
import { RpcUnavailableError } from '../../src/chains/rpc.ts'
import { parseNode } from '../../src/config/parse.ts'
import { openChain } from '../support/chain/open.ts'
import { type Policy, policies } from './support/policies.ts'
import { openProvider, type Provider } from './support/provider.ts'

const chain = await openChain()
const minted = 3
for (let i = 0; i < minted; i++) {
  await chain.mint('0x70997970C51812dc3A010C7d01b50e0d17dc79C8', 1n)
  await chain.mine(80)
}
const other = await openChain({ network: 'BASE_SEPOLIA' })
await other.client.setNonce({ address: chain.token, nonce: 7 })

async function open(policy: Policy, limits = '', now = () => new Date()) {
  const provider = await openProvider(chain.url, policy)
  const { rpc } = openOurs(chain.network, [parseNode(`node=${provider.url}${limits}`)], now)
  return { provider, rpc }
}

const toHex = (number: number) => `0x${number.toString(16)}`
const blocks = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    method: 'eth_getBlockByNumber',
    params: [toHex(i), false],
  }))
const counts = (count: number) =>
  Array.from({ length: count }, () => ({
    method: 'eth_getTransactionCount',
    params: [chain.token, 'latest'],
  }))

const logsOf = (from: number, to: number) => [
  {
    method: 'eth_getLogs',
    params: [{ address: chain.token, fromBlock: toHex(from), toBlock: toHex(to) }],
  },
]

const batchOf = (calls: readonly { method: string }[]) => calls.some(({ method }) => method === 'eth_chainId')

describe('no provider needs to take batches', () => {
  for (const refusal of ['one-error', 'status-400', 'status-200', 'status-413'] as const)
    for (const callsMax of [10, 3, 1])
      test(`at most ${callsMax} calls per request, refused by ${refusal}`, async () => {
        const { provider, rpc } = await open({ callsMax, refusal })
        const asked = [...blocks(34), ...counts(5)]
        const outcomes = await rpc.batch(asked)
        assert.deepEqual(
          outcomes.map((outcome, i) => {
            assert('result' in outcome)
            return i < 34 ? (outcome.result as { number: string }).number : outcome.result
          }),
          [...blocks(34).map(({ params }) => params[0]), ...counts(5).map(() => '0x0')],
        )
        const { refused } = provider
        await rpc.batch(asked)
        assert.equal(provider.refused, refused, 'what was refused is not tried again')
      })

  test('a method that must not be in a batch is asked alone, and the others are not', async () => {
    const { provider, rpc } = await open({ aloneOnly: ['eth_getTransactionCount'], refusal: 'status-400' })
    await rpc.batch([...blocks(5), ...counts(3)])
    const before = provider.requests
    await rpc.batch(blocks(9))
    assert.equal(provider.requests - before, 1)
  })

  test('a limit that is set is kept from the first request on, and is not sent to the provider', async () => {
    const { provider, rpc } = await open({ callsMax: 3, refusal: 'status-400' }, '#calls=3')
    await rpc.batch(blocks(30))
    assert.deepEqual([provider.refused, provider.mostCalls], [0, 3])
  })

  test('a node that refuses everything for a while is asked in batches again afterwards', async () => {
    const { provider, rpc } = await open({})
    const error = { jsonrpc: '2.0', id: null, error: { code: -32603, message: 'upstream is down' } }
    provider.answerRequest = () => ({ status: 400, body: JSON.stringify(error) })
    await assert.rejects(rpc.callAll('eth_getTransactionCount', [chain.token, 'latest']))
    provider.answerRequest = () => null
    const before = provider.requests
    await rpc.batch(counts(9))
    assert.equal(provider.requests - before, 1)
  })
})

describe('a backend that fails over to another chain is not believed', () => {
  const isOurs = (count: unknown) => count === '0x0'
  const swapAfter = (provider: Provider, requests: number) => {
    let left = requests
    provider.answerRequest = () => {
      if (left-- === 0) provider.target = other.url
      return null
    }
  }

  for (const callsMax of [10, 3, 1])
    for (const requests of [0, 1, 2, 3])
      test(`at most ${callsMax} calls per request, after ${requests} requests`, async () => {
        const { provider, rpc } = await open({ callsMax, refusal: 'status-400' })
        await rpc.batch(counts(12))
        swapAfter(provider, requests)
        const told = await rpc.batch(counts(12)).catch((error: unknown) => error)
        if (Array.isArray(told)) assert(told.every((outcome) => isOurs(outcome.result)))
        else assert(told instanceof RpcUnavailableError)
        provider.target = other.url
        await assert.rejects(rpc.batch(counts(2)), RpcUnavailableError)
      })

  test('each request of a batch asks which chain it is on', async () => {
    const { provider, rpc } = await open({})
    let without = 0
    provider.answerRequest = (calls) => {
      if (!batchOf(calls)) without++
      return null
    }
    await rpc.batch(counts(30))
    assert.equal(without, 0)
  })
})

describe('a provider that limits the range of blocks is asked in parts', () => {
  for (const blocksMax of [1, 5, 10, 100])
    test(`of at most ${blocksMax} blocks: nothing is left out, and the limit is learned`, async (t) => {
      const { provider, rpc } = await open({ blocksMax, callsMax: 10, refusal: 'status-200' })
      const [truth] = await (await open({})).rpc.batch(logsOf(0, 240))
      const [told] = await rpc.batch(logsOf(0, 240))
      assert(truth && told && 'result' in truth && 'result' in told)
      assert.equal((told.result as unknown[]).length, minted)
      assert.deepEqual(told.result, truth.result)
      t.diagnostic(`${provider.refusals.length} refusals`)
      assert(provider.refusals.length <= 12)
      const before = provider.refusals.length
      await rpc.batch(logsOf(20, 200))
      assert.equal(provider.refusals.length, before)
    })

  test('a range that is set is kept from the first question on', async () => {
    const { provider, rpc } = await open({ blocksMax: 7 }, '#calls=20&blocks=7')
    await rpc.batch(logsOf(3, 90))
    assert.deepEqual(provider.refusals, [])
  })

  test('a node that answers no question for logs is asked a dozen of them, not thousands', async () => {
    const { provider, rpc } = await open({})
    provider.answerCall = ({ method }) =>
      method === 'eth_getLogs' ? { code: -32603, message: 'internal error' } : null
    const [outcome] = await rpc.batch(logsOf(0, 240))
    assert(outcome && 'error' in outcome)
    assert((provider.asked.get('eth_getLogs') ?? 0) <= 12)
  })
})

describe('a refusal that has passed does not make us ask for less', () => {
  const internal = { code: -32603, message: 'internal error' }

  test('an internal error is asked about once more, and then forgotten', async () => {
    const { provider, rpc } = await open({})
    let left = 1
    provider.answerCall = ({ method }) => (method === 'eth_getLogs' && left-- > 0 ? internal : null)
    const [outcome] = await rpc.batch(logsOf(0, 240))
    assert(outcome && 'result' in outcome)
    assert.deepEqual(rpc.listLimits(), [])
    assert.equal(provider.asked.get('eth_getLogs'), 3)
  })

  const limits: readonly (readonly [string, number | null])[] = [
    ['internal error', null],
    ['query exceeds max block range', 60],
    ['query exceeds max block range 100', 100],
    ['Under the Free tier plan, you can ask for up to a 10 block range.', 10],
    ['query exceeds max block range 5000, see section 1', 60],
    ['range not available: 3 blocks behind the head', 60],
  ]
  for (const [message, kept] of limits)
    test(`after a minute, ${kept ?? 'no'} blocks are remembered from "${message}"`, async () => {
      let seconds = 0
      const { provider, rpc } = await open({}, '', () => new Date(seconds * 1_000))
      provider.answerCall = ({ method, params }) => {
        const [filter] = params as readonly { fromBlock?: string; toBlock?: string }[]
        const blocks =
          Number.parseInt(filter?.toBlock ?? '0', 16) - Number.parseInt(filter?.fromBlock ?? '0', 16)
        return method === 'eth_getLogs' && blocks >= 100 ? { code: -32603, message } : null
      }
      await rpc.batch(logsOf(0, 240))
      assert.equal(rpc.listLimits()[0]?.blocksMax, kept ?? 60)
      seconds = 61
      assert.equal(rpc.listLimits()[0]?.blocksMax ?? null, kept)
    })

  test('so it is with the calls of one request', async () => {
    let seconds = 0
    const { provider, rpc } = await open({}, '', () => new Date(seconds * 1_000))
    provider.answerRequest = (calls) =>
      calls.length > 5 ? { status: 200, body: JSON.stringify({ jsonrpc: '2.0', error: internal }) } : null
    await rpc.batch(blocks(9))
    assert.equal(rpc.listLimits().length, 1)
    seconds = 61
    assert.deepEqual(rpc.listLimits(), [])
  })
})

describe('an answer is given to the call that it is about, or to none', () => {
  const numbersIn = (outcomes: readonly object[]) =>
    outcomes.map((outcome) => (outcome as { result?: { number: string } }).result?.number)
  const reply = (id: number | null, more: object) => ({ jsonrpc: '2.0', id, ...more })
  const error = { code: -32603, message: 'internal error' }

  test('an error without an id is nobody’s in a batch', async () => {
    const { provider, rpc } = await open({})
    const [first, second] = await rpc.batch(blocks(2))
    assert(first && second)
    provider.answerRequest = (calls) =>
      calls.length === 1
        ? null
        : { status: 200, body: JSON.stringify([reply(null, { error }), reply(calls[0]?.id ?? 0, first)]) }
    assert.deepEqual(numbersIn(await rpc.batch(blocks(2))), numbersIn([first, second]))
  })

  test('an error without an id is the answer to a call that was made alone', async () => {
    const { provider, rpc } = await open({}, '#calls=1')
    await rpc.batch(blocks(1))
    provider.answerRequest = () => ({ status: 200, body: JSON.stringify(reply(null, { error })) })
    const [outcome] = await rpc.batch(blocks(1))
    assert(outcome && 'error' in outcome)
    assert.equal(outcome.error.message, error.message)
  })

  const wrong: Readonly<Record<string, (id: number) => unknown>> = {
    'another id': (id) => reply(id + 1, { result: null }),
    'neither a result nor an error': (id) => reply(id, {}),
    'no object': () => 'ok',
  }
  for (const [name, answer] of Object.entries(wrong))
    for (const limits of ['', '#calls=1'])
      test(`a reply with ${name} is none${limits ? ', to a call alone' : ''}`, async () => {
        const { provider, rpc } = await open({}, limits)
        await rpc.batch(blocks(1))
        provider.answerRequest = (calls) => {
          const replies = calls.map(({ id }) => answer(id))
          return { status: 200, body: JSON.stringify(limits ? replies[0] : replies) }
        }
        await assert.rejects(rpc.batch(blocks(1)), RpcUnavailableError)
      })
})

describe('a provider that limits the rate is kept to it', () => {
  for (const limitForm of ['status-429', 'retry-after', 'each'] as const)
    test(`refused by ${limitForm}: everything is answered, late`, async (t) => {
      const { provider, rpc } = await open({ perSecond: 60, burst: 30, limitForm })
      for (let i = 0; i < 4; i++) assert.equal((await rpc.batch(blocks(20))).length, 20)
      t.diagnostic(JSON.stringify({ requests: provider.requests, limited: provider.limited }))
      assert(provider.limited > 0)
    })
})

describe('everything that is asked at once is answered', () => {
  for (const [name, policy] of Object.entries(policies))
    test(`as ${name} allows`, async (t) => {
      const { provider, rpc } = await open(policy)
      const outcomes = await rpc.batch([...blocks(34), ...counts(5), ...logsOf(0, 60)])
      assert.deepEqual(
        outcomes.filter((outcome) => 'error' in outcome),
        [],
      )
      const { requests, refused, limited } = provider
      t.diagnostic(JSON.stringify({ requests, refused, limited }))
    })
})

describe('a provider with a low limit', () => {
  const slow = { blocksMax: 2, perSecond: 20, burst: 20, limitForm: 'status-429' } as const
  const openThree = async (third: Policy) => {
    const providers = [
      await openProvider(chain.url),
      await openProvider(chain.url),
      await openProvider(chain.url, third),
    ]
    const nodes = providers.map(({ url }, i) => parseNode(`node${i}=${url}`))
    return { providers, rpc: openOurs(chain.network, nodes, () => new Date()).rpc }
  }

  test('is asked no further once enough others have answered, and so has time for the next question', async () => {
    const { providers, rpc } = await openThree(slow)
    const last = providers[2]
    assert(last)
    await rpc.askAll(logsOf(1, 20))
    assert.equal(rpc.listLimits()[0]?.provider, 'node2', 'its limits are known')
    const before = last.asked.get('eth_getLogs') ?? 0
    const logs = await rpc.askAll(logsOf(1, 200), (told) => told.length >= 2)
    assert.deepEqual(
      logs.map(({ provider }) => provider),
      ['node0', 'node1'],
    )
    const told = await rpc.askAll([{ method: 'eth_gasPrice', params: [] }])
    assert.equal(told.length, 3)
    const asked = (last.asked.get('eth_getLogs') ?? 0) - before
    assert(asked <= 40, `${asked} requests for logs`)
  })

  test('makes a look shorter only if its answer is needed', async () => {
    const { rpc } = await openThree(slow)
    assert.equal(rpc.blocksIn(3_000, 2), Number.POSITIVE_INFINITY)
    await rpc.askAll(logsOf(1, 200))
    assert.equal(rpc.blocksIn(3_000, 2), Number.POSITIVE_INFINITY)
    const blocks = rpc.blocksIn(3_000, 3)
    const [{ perSecond = null, blocksMax = null } = {}] = rpc.listLimits()
    assert(perSecond !== null && blocksMax !== null)
    assert.equal(blocks, perSecond * 3 * blocksMax)
  })
})
