import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decodeFunctionResult, encodeFunctionResult, type Hex, numberToHex } from 'viem'
import { openChain as openOurs } from '../../../src/chains/evm/chain.ts'
import { openSigner } from '../../../src/chains/evm/signer.ts'
import { RpcAnswerError } from '../../../src/chains/rpc.ts'
import { parseNode } from '../../../src/config/parse.ts'
import { fundedKey, multicallAbi } from '../../support/chain/evm.ts'
import { openChain } from '../../support/chain/open.ts'
import {
  type Call,
  type Fault,
  type FaultyNode,
  faults,
  openFaultyNode,
  seededRandom,
} from '../../support/faulty-node.ts'
import { halt, jumpPast, resume, untilPooled } from './chain-faults.ts'
import { type Deployment, openDeployment, payTo, readHeader } from './deployment.ts'
import { until, untilEnded } from './processes.ts'
import { rounds } from './rounds.ts'

const paymentsPerSeed = 24

/** One request in this many fails. */
const faultEvery = 4
/** A request that is never answered blocks its caller for five seconds, so these are rarer. */
const hangingEvery = 60

/** The share of requests that a node of another chain answers. */
const swappedShare = 0.4
const swapsMin = 20

function chooseBySeed(seed: number): (calls: readonly Call[]) => Fault | null {
  const random = seededRandom(seed)
  const others = faults.filter((fault) => fault !== 'hanging')
  return () => {
    if (random() < 1 / hangingEvery) return 'hanging'
    return random() < 1 / faultEvery ? (others[Math.floor(random() * others.length)] ?? null) : null
  }
}

/** Whatever the nodes do, a waiting payer only hears that it should try again. */
const patientStatuses = new Set([0, 202, 409, 503])

async function payMany(deployment: Deployment, count: number): Promise<void> {
  const orders = await Promise.all(
    Array.from({ length: count }, (_, i) => deployment.order(deployment.payer(i))),
  )
  const answers = await Promise.all(orders.map(({ id, header }) => deployment.pay(id, header)))
  for (const { status, before, body } of answers) {
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual(
      before.filter((earlier) => !patientStatuses.has(earlier)),
      [],
    )
  }
}

async function countEvents(deployment: Deployment, type: string): Promise<number> {
  const [row] = await deployment.db.query<{ events: number }>(
    'select count(*)::int as events from events where type = $1',
    [type],
  )
  return row?.events ?? 0
}

describe('whatever the nodes do, payments complete once and nobody is asked to pay again', {
  concurrency: 2,
}, () => {
  test('a single node that produces every kind of fault', async (t) => {
    for (const seed of rounds(t, 'seeds', 1, 50)) {
      const chain = await openChain({ blockTimeSeconds: 1 })
      const node = await openFaultyNode(chain.url)
      const deployment = await openDeployment(chain, { rpcUrls: [node.url], payers: 12 })
      node.choose = chooseBySeed(seed)
      await payMany(deployment, paymentsPerSeed)
      await until('every fault has occurred', async () => node.committed.size === faults.length)
      node.choose = () => null
      await deployment.check()
      assert.equal((await chain.transferLogs({ to: payTo })).length, paymentsPerSeed, `seed ${seed}`)
      assert.equal(
        await countEvents(deployment, 'payment.reorged'),
        0,
        'a lagging node was taken for a reorganisation',
      )
      await deployment.end()
    }
  })

  test('a load balancer with a lagging member does not take payments back', async () => {
    const chain = await openChain({ blockTimeSeconds: 1 })
    const node = await openFaultyNode(chain.url)
    const deployment = await openDeployment(chain, { rpcUrls: [node.url] })
    const { id, header } = await deployment.order(deployment.payer(0))
    await halt(chain)
    const paying = deployment.pay(id, header)
    await untilPooled(chain, deployment.settler)
    await chain.mine()
    assert.equal((await paying).status, 200)
    // One member reports the newest block, another the blocks below it.
    node.choose = (calls) => (calls.some(({ params }) => params[0] === 'latest') ? null : 'stale')
    await chain.mine(2)
    await until('the lagging member was queried', async () => (node.committed.get('stale') ?? 0) >= 4)
    node.choose = () => null
    await deployment.check()
    assert.deepEqual(await deployment.events(id), [
      'checkout.created',
      'checkout.processing',
      'checkout.completed',
    ])
  })

  test('a payer whose money a node has not seen yet is asked to retry, not to pay', async () => {
    const chain = await openChain({ blockTimeSeconds: 1 })
    const node = await openFaultyNode(chain.url)
    const deployment = await openDeployment(chain, { rpcUrls: [node.url] })
    const id = await deployment.create()
    await halt(chain)
    const header = await deployment.sign(id, await deployment.fund())
    const head = Number(await chain.client.getBlockNumber())
    await until('the block is read', async () => {
      const [follower] = await deployment.db.query<{ head_number: string }>(
        'select head_number from followers',
      )
      return follower?.head_number === String(head)
    })
    node.choose = (calls) => (calls.some(({ method }) => method === 'eth_call') ? 'stale' : null)
    const answer = await deployment.ask(id, header)
    assert.deepEqual([answer?.status, answer?.code], [503, 'settlement_unavailable'])
    node.choose = () => null
    const paying = deployment.pay(id, header)
    await untilPooled(chain, deployment.settler)
    await chain.mine()
    assert.equal((await paying).status, 200)
    await deployment.check()
  })

  test('a node that never answers does not delay a transaction that another node accepted', async () => {
    const chain = await openChain()
    const [good, mute] = [await openFaultyNode(chain.url), await openFaultyNode(chain.url)]
    mute.choose = () => 'hanging'
    const { rpc } = openOurs(chain.network, [parseNode(good.url), parseNode(mute.url)], () => new Date())
    const signer = openSigner(fundedKey(1))
    const { bytes } = await signer.sign(
      openOurs(chain.network, [parseNode(chain.url)], () => new Date()),
      {
        to: signer.address,
        data: '0x',
        nonce: 0,
        gas: 21_000n,
        maxFeePerGas: 10n ** 10n,
        maxPriorityFeePerGas: 1n,
      },
    )
    // Both nodes hand it to one chain, so the mute one may have been first.
    await rpc
      .send('eth_sendRawTransaction', [bytes])
      .catch((error) => assert.match(String(error), /already imported/))
    await assert.rejects(rpc.send('eth_sendRawTransaction', [bytes]), RpcAnswerError)
    await until('the mute node holds both requests', async () => mute.waiting === 2)
  })

  test('a node that was swapped for one of another chain is not trusted', async () => {
    const chain = await openChain({ blockTimeSeconds: 1 })
    const other = await openChain({ network: 'BASE_SEPOLIA' })
    await other.mine(100)
    const node = await openFaultyNode(chain.url)
    const deployment = await openDeployment(chain, { rpcUrls: [node.url] })
    await payMany(deployment, 4)
    const { id, header } = await deployment.order(deployment.payer(4))
    node.target = other.url
    const asked = node.asked.get('eth_chainId') ?? 0
    const refused = await deployment.ask(id, header)
    assert.equal(refused?.status, 503)
    await until(
      'the swapped node was queried',
      async () => (node.asked.get('eth_chainId') ?? 0) >= asked + 10,
    )
    node.target = chain.url
    assert.equal((await deployment.pay(id, header)).status, 200)
    await deployment.check()
    assert.equal(await countEvents(deployment, 'payment.reorged'), 0)
  })

  test('two nodes that keep switching chains let payments through on our chain and on no other', async (t) => {
    for (const seed of rounds(t, 'seeds', 1, 50)) {
      const chain = await openChain({ blockTimeSeconds: 1 })
      // Everything that could be confused exists there too: blocks, the token, and transfers to the same wallet.
      const other = await openChain({ network: 'BASE_SEPOLIA', blockTimeSeconds: 1 })
      const nodes = [await openFaultyNode(chain.url), await openFaultyNode(chain.url)]
      const deployment = await openDeployment(chain, { rpcUrls: nodes.map(({ url }) => url), payers: 12 })
      const random = seededRandom(seed)
      let swapped = 0
      for (const node of nodes)
        node.choose = () => {
          const isSwapped = random() < swappedShare
          if (isSwapped) swapped++
          node.target = isSwapped ? other.url : chain.url
          return null
        }
      await Promise.all([payMany(deployment, paymentsPerSeed), other.mint(payTo, 1_000_000n)])
      await until('the nodes switched often enough', async () => swapped >= swapsMin)
      for (const node of nodes) node.choose = () => null
      for (const node of nodes) node.target = chain.url
      await deployment.check()
      assert.equal((await chain.transferLogs({ to: payTo })).length, paymentsPerSeed, `seed ${seed}`)
      assert.equal(await other.client.getTransactionCount({ address: deployment.settler }), 0)
      assert.equal(await countEvents(deployment, 'payment.reorged'), 0)
      await deployment.end()
      await other.stop()
    }
  })
})

describe('on a live network, two nodes must confirm that something did not happen', {
  concurrency: 2,
}, () => {
  test('work does not start with one node', async () => {
    const chain = await openChain({ network: 'BASE_MAINNET' })
    const deployment = await openDeployment(chain, { start: false })
    const work = await deployment.start('work')
    await untilEnded(work)
    assert.equal(work.child.exitCode, 1)
    assert.match(work.output(), /BASE_MAINNET_RPC_URLS must name nodes of at least 2/)
  })

  test('a payment that one node hides is not lost, and completes as soon as both show it', async () => {
    const { deployment, nodes, chain } = await openWitnessed()
    const [liar = assert.fail()] = nodes
    liar.lie = hide
    const { id, header } = await deployment.order(deployment.payer(0))
    const paying = deployment.pay(id, header)
    const { from, nonce } = readHeader(header)
    await until('the payment is mined', () => chain.isNonceUsed(from, nonce))
    await chain.mine(2)
    assert.equal((await deployment.read(id)).status, 'PROCESSING')
    liar.lie = (_, result) => result
    assert.equal((await paying).status, 200)
    await deployment.check()
  })

  test('a payment that one node calls unused is not given up for dead', async () => {
    const { deployment, nodes, chain } = await openWitnessed()
    const [liar, mute] = nodes
    assert(liar && mute)
    // Neither shows the payment in its logs, and one even claims that its nonce is unused.
    liar.lie = (call, result) => hide(call, sayEach(call, result, 0n))
    mute.lie = hide
    const { id, header } = await deployment.order(deployment.payer(0), {
      validBefore: await deployment.soon(),
    })
    const asked = deployment.answers.length
    const paying = deployment.pay(id, header)
    const { from, nonce } = readHeader(header)
    await until('the payment is mined', () => chain.isNonceUsed(from, nonce))
    await jumpPast(chain, readHeader(header))
    await chain.pass(chain.network.negativeSeconds)
    await assertKeptOpen(deployment, id, 'eth_call in a block', liar, mute)
    assert(deployment.answers.slice(asked).every(({ status }) => status === 202))
    for (const node of nodes) node.lie = (_, result) => result
    await chain.mine()
    const answer = await paying
    assert.equal(answer.status, 200, JSON.stringify(answer))
    await deployment.check()
  })

  test('a payment that never happened is given up for dead only when both nodes say so', async () => {
    const { deployment, nodes, chain } = await openWitnessed()
    const [first, second] = nodes
    assert(first && second)
    const { id, header } = await deployment.order(deployment.payer(0), {
      validBefore: await deployment.soon(),
    })
    await halt(chain)
    const paying = deployment.pay(id, header)
    await untilPooled(chain, deployment.settler)
    second.choose = () => 'refused'
    await jumpPast(chain, readHeader(header))
    await chain.pass(chain.network.negativeSeconds)
    await resume(chain)
    await assertKeptOpen(deployment, id, 'eth_call', first)
    second.choose = () => null
    second.lie = (call, result) => sayEach(call, result, 1n)
    await assertKeptOpen(deployment, id, 'eth_call in a block', first, second)
    second.lie = (_, result) => result
    const { status, body } = await paying
    assert.equal(status, 402)
    assert.equal(body.error, 'authorization_expired')
    await deployment.check()
  })
})

/** A live network behind two nodes. */
async function openWitnessed() {
  const chain = await openChain({ network: 'BASE_MAINNET', blockTimeSeconds: 1 })
  const nodes = [await openFaultyNode(chain.url), await openFaultyNode(chain.url)]
  const deployment = await openDeployment(chain, { rpcUrls: nodes.map(({ url }) => url) })
  return { deployment, nodes, chain }
}

function hide({ method }: Call, result: unknown): unknown {
  return method === 'eth_getLogs' ? [] : result
}

/** Makes every nonce at a block look used (1) or unused (0). */
function sayEach({ method, params }: Call, result: unknown, state: bigint): unknown {
  if (method !== 'eth_call' || typeof params[1] !== 'object') return result
  const results = decodeFunctionResult({ abi: multicallAbi, functionName: 'aggregate3', data: result as Hex })
  return encodeFunctionResult({
    abi: multicallAbi,
    functionName: 'aggregate3',
    result: results.map(({ success }) => ({ success, returnData: numberToHex(state, { size: 32 }) })),
  })
}

/**
 * Asserts that the payment is still open after these nodes have been queried several more times. One that was given up
 * is not asked about again.
 */
async function assertKeptOpen(
  deployment: Deployment,
  id: string,
  about: 'eth_call' | 'eth_call in a block',
  ...nodes: readonly FaultyNode[]
): Promise<void> {
  const count = ({ asked }: FaultyNode) => asked.get(about) ?? 0
  const before = nodes.map(count)
  let status = ''
  await until('the nodes were queried again', async () => {
    ;({ status } = await deployment.read(id))
    return status !== 'PROCESSING' || nodes.every((node, i) => count(node) >= (before[i] ?? 0) + 4)
  })
  assert.equal(status, 'PROCESSING')
}
