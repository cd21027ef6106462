import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ask as askNode } from '../checker/read-chain.ts'
import { openChain, settlerKey } from './chain.ts'
import { lies } from './liar.ts'
import { type NodeFault, nodeFaults, openNodeProxy } from './node-proxy.ts'

type Reply = { readonly id: number; readonly result?: unknown; readonly error?: { readonly message: string } }

type Block = { readonly hash: string; readonly parentHash: string }

/** Longer than any real answer takes, and shorter than the hanging fault. */
const patienceMs = 2_000
const account = '0x1000000000000000000000000000000000000001'
/** An account with ether, for which the node signs. */
const payer = settlerKey(8).address

describe('a misbehaving node', () => {
  let folder: string
  let chain: Awaited<ReturnType<typeof openChain>>
  let proxy: Awaited<ReturnType<typeof openNodeProxy>>

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'node-proxy-'))
    chain = await openChain(folder)
    // Blocks are mined only by the tests.
    await chain.end()
    await chain.call('anvil_mine', '0x10')
    proxy = await openNodeProxy(chain.url, { queryOnce: async () => [] })
  })
  after(async () => {
    proxy.close()
    await chain.stop()
    await rm(folder, { recursive: true, force: true })
  })

  /** What a client gets from a node with this fault: replies, a status, or nothing. */
  async function ask(fault: NodeFault, ...calls: (readonly [method: string, ...params: unknown[]])[]) {
    proxy.choosers.clear()
    proxy.choosers.add(() => fault)
    const asked = [['eth_chainId'] as const, ...calls]
    const body = asked.map(([method, ...params], id) => ({ jsonrpc: '2.0', id, method, params }))
    const response = await fetch(proxy.urls[0] ?? '', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(patienceMs),
    }).catch((error: Error) => (error.name === 'TimeoutError' ? 'no answer' : 'broken'))
    if (typeof response === 'string') return { heard: response, replies: [] }
    const text = await response.text()
    const replies = text.startsWith('[')
      ? (JSON.parse(text) as Reply[]).toSorted((a, b) => a.id - b.id).slice(1)
      : []
    return { heard: replies.length > 0 ? 'replies' : `${response.status} ${text}`, replies }
  }
  const balance = async () => BigInt(await chain.call<string>('eth_getBalance', account, 'latest'))
  let units = 1
  /** Makes a request that has an effect, and checks whether it took effect. */
  async function askToAct(fault: NodeFault) {
    const wanted = BigInt(units++)
    const { heard, replies } = await ask(fault, ['anvil_setBalance', account, `0x${wanted.toString(16)}`])
    return { heard, replies, isDone: (await balance()) === wanted }
  }

  test('lost, hanging, denied and nothing: the request is executed', async () => {
    for (const [fault, heard] of [
      ['lost', 'broken'],
      ['hanging', 'no answer'],
    ] as const)
      assert.deepEqual(await askToAct(fault), { heard, replies: [], isDone: true }, fault)
    const denied = await askToAct('denied')
    assert(denied.isDone)
    assert.equal(denied.replies[0]?.error?.message, 'nonce too low')
    const nothing = await askToAct('nothing')
    assert.deepEqual([nothing.isDone, nothing.replies[0]?.result], [true, null])
  })

  test('refused, limited, garbage and internal: the request is not executed', async () => {
    for (const [fault, heard] of [
      ['refused', 'broken'],
      ['limited', '429 slow down'],
      ['garbage', '200 <html>502</html>'],
    ] as const)
      assert.deepEqual(await askToAct(fault), { heard, replies: [], isDone: false }, fault)
    const internal = await askToAct('internal')
    assert.deepEqual([internal.isDone, internal.replies[0]?.error?.message], [false, 'internal error'])
  })

  test('twice: the request is executed twice', async () => {
    const head = Number(await chain.call<string>('eth_blockNumber'))
    await ask('twice', ['evm_mine'])
    assert.equal(Number(await chain.call<string>('eth_blockNumber')), head + 2)
  })

  test('stranger: it reports another chain id, and answers everything else', async () => {
    const { replies } = await ask('stranger', ['eth_chainId'], ['eth_getBalance', account, 'latest'])
    assert.deepEqual([replies[0]?.result, typeof replies[1]?.result], ['0x1', 'string'])
  })

  test('stale: it is three blocks behind for every method', async () => {
    const old = await balance()
    await chain.call('anvil_setBalance', account, '0xffff')
    const paid = await chain.call('eth_sendTransaction', { from: payer, to: account, value: '0x1' })
    await chain.call('anvil_mine', '0x2')
    const head = Number(await chain.call<string>('eth_blockNumber'))
    const at = (number: number) => `0x${number.toString(16)}`
    const { replies } = await ask(
      'stale',
      ['eth_blockNumber'],
      ['eth_getBlockByNumber', 'latest', false],
      ['eth_getBlockByNumber', at(head), false],
      ['eth_getBlockByNumber', at(head - 3), false],
      ['eth_getBalance', account, 'latest'],
      ['eth_getTransactionCount', account, at(head)],
      ['eth_getTransactionReceipt', paid],
    )
    const [number, latest, newest, older, held, count, receipt] = replies
    const numberOf = (reply: Reply | undefined) => (reply?.result as { number: string } | null)?.number
    assert.equal(number?.result, at(head - 3))
    assert.equal(numberOf(latest), at(head - 3))
    assert.equal(newest?.result, null)
    assert.equal(numberOf(older), at(head - 3))
    assert.equal(held?.result, at(Number(old)))
    assert.equal(count?.error?.message, 'header not found')
    assert.equal(receipt?.result, null)
  })

  test('stale: it has no new logs, and reports a new block as unknown instead of empty', async () => {
    await chain.fund(account, 1n)
    await chain.call('anvil_mine', '0x1')
    const { hash, number } = await chain.call<{ hash: string; number: string }>(
      'eth_getBlockByNumber',
      'latest',
      false,
    )
    const asked = [{ fromBlock: number, toBlock: number }, { blockHash: hash }]
    for (const filter of asked)
      assert.equal((await chain.call<object[]>('eth_getLogs', filter)).length, 1, 'the log exists')
    const { replies } = await ask('stale', ...asked.map((filter) => ['eth_getLogs', filter] as const))
    assert.deepEqual(replies[0]?.result, [])
    assert.equal(replies[1]?.error?.message, 'unknown block')
  })

  test('a provider that tells another history tells a consistent one, and the others tell the truth', async () => {
    proxy.choosers.clear()
    const [head = assert.fail()] = await askNode<string>(chain.url, [['eth_blockNumber']])
    const number = Number.parseInt(head, 16)
    const asked = [number - 1, number].map(
      (at) => ['eth_getBlockByNumber', `0x${at.toString(16)}`, false] as const,
    )
    const truth = await askNode<Block>(chain.url, asked)
    proxy.liars.set('a', lies['another history below finalized']())
    const [told = [], honest = []] = await Promise.all(proxy.urls.map((url) => askNode<Block>(url, asked)))
    proxy.liars.clear()
    assert.deepEqual(honest, truth)
    assert.notEqual(told[1]?.hash, truth[1]?.hash)
    assert.equal(told[1]?.parentHash, told[0]?.hash)
    assert.equal(proxy.falsehoods, asked.length)
  })

  test('every fault is counted separately', () => {
    const met = new Set([...proxy.committed.keys()].map((pair) => pair.split(' ')[1]))
    assert.deepEqual(
      nodeFaults.filter((fault) => !met.has(fault)),
      [],
    )
  })
})
