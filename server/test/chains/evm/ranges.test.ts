/** The chain is read by ranges: what is between two stored blocks was searched, and holds nothing that concerns us. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData } from 'viem'
import { lies } from '../../../../chaos/harness/liar.ts'
import { registerWallet } from '../../../src/stores/wallets.ts'
import { openTwoNodes } from '../../payments/adversity/attacks/support/two-nodes.ts'
import { tokenAbi } from '../../support/chain/evm.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import type { Call, FaultyNode } from '../../support/faulty-node.ts'
import { operator } from '../../support/operator.ts'
import { payTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

const shop = await openTwoNodes()
const { chain, ctx } = shop

type Filter = { readonly fromBlock?: string; readonly toBlock?: string }
const isSearch = ({ method, params: [filter] }: Call) =>
  method === 'eth_getLogs' && (filter as Filter).fromBlock !== undefined

/** Sends money that no checkout waits for. */
async function give(to: string, units: bigint): Promise<void> {
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'mint', args: [to as `0x${string}`, units] })
  await chain.send({ to: chain.token, data })
}

const amountsAt = async (wallet: string) =>
  (
    await ctx.db.query<{ amount: string }>(
      'select amount from credits where pay_to = $1 and orphaned_at is null order by block_number',
      [wallet.toLowerCase()],
    )
  ).map(({ amount }) => amount)

const readState = async () => {
  const [row] = await ctx.db.query<{ head: string; safe: string; settled: string; stored: string }>(
    `select head_number as head, safe_number as safe, settled_number as settled,
       (select count(*) from blocks b where b.network = f.network) as stored from followers f`,
  )
  assert(row)
  return row
}

test('blocks in which nothing concerns us are searched at once, and only the last of them is stored', async () => {
  const before = await readState()
  for (const node of shop.nodes) node.asked.clear()
  await chain.mine(40)
  await shop.follow()
  const after = await readState()
  assert.equal(after.head, `${await chain.client.getBlockNumber()}`)
  assert(Number.parseInt(after.stored, 10) <= Number.parseInt(before.stored, 10) + 2)
  const searches = shop.nodes.map(({ asked }) => asked.get('eth_getLogs') ?? 0)
  assert(
    searches.every((count) => count <= 4),
    `${searches} searches`,
  )
})

test('the time between blocks is known after a minute of them, although nothing became final', async () => {
  await ctx.db.query('update followers set block_time_ms = null')
  const readFinal = async () => (await ctx.db.query('select safe_number, finalized_number from followers'))[0]
  const before = await readFinal()
  shop.nodes.forEach((node) => {
    node.choose = (calls) =>
      calls.some(({ params: [tag] }) => tag === 'safe' || tag === 'finalized') ? 'refused' : null
  })
  await chain.client.mine({ blocks: 40, interval: 2 })
  await shop.follow().catch(() => {})
  for (const node of shop.nodes) node.choose = () => null
  const [row] = await ctx.db.query<{ ms: number | null }>('select block_time_ms as ms from followers')
  assert.deepEqual(await readFinal(), before)
  assert(row?.ms, 'so an idle look need not ask for the head')
})

test('money in the middle of a range is found, in its own block', async () => {
  await chain.mine(3)
  await give(payTo, 41n)
  await chain.mine()
  const { number } = await chain.client.getBlock()
  await chain.mine(5)
  await shop.follow()
  const [found] = await ctx.db.query('select amount, block_number from credits where amount = 41')
  assert.deepEqual(found, { amount: '41', block_number: `${number}` })
})

test('money to a wallet that is registered while its block is searched is found', async () => {
  const { address } = newPayer()
  await give(address, 42n)
  await chain.mine()
  const releases = shop.nodes.map((node) => node.hold('eth_getLogs'))
  const following = shop.follow()
  await until('the search', async () => shop.nodes.every(({ holding }) => holding > 0))
  const wallet = { walletAddress: address, custodialType: 'NON_CUSTODIAL' } as const
  await registerWallet(ctx, shop.store.id, operator, { family: 'EVM', ...wallet }, ctx.now())
  for (const release of releases) release()
  await following
  assert.deepEqual(await amountsAt(address), ['42'])
})

/** Finds nothing, as a node does that has a block before its logs. */
function blind(node: FaultyNode): void {
  node.lie = (call, result) => (isSearch(call) ? [] : result)
}

test('money that every node missed when its block was new is found later, and nothing above it is safe before', async () => {
  const before = await amountsAt(payTo)
  await give(payTo, 43n)
  for (const node of shop.nodes) blind(node)
  await shop.mine()
  const { number } = await chain.client.getBlock()
  assert.deepEqual(await amountsAt(payTo), before)
  for (const node of shop.nodes) node.lie = (_, result) => result
  await shop.mine()
  assert.deepEqual(await amountsAt(payTo), [...before, '43'])
  const [credit] = await ctx.db.query('select block_number from credits where amount = 43')
  assert.deepEqual(credit, { block_number: `${number}` })
  assert(BigInt((await readState()).safe) < (number ?? 0n))
})

test('what only one of two nodes finds is read from both, and safe waits until the other finds it too', async () => {
  const before = await amountsAt(payTo)
  await give(payTo, 44n)
  blind(shop.first)
  await shop.mine()
  const { number } = await chain.client.getBlock()
  assert.deepEqual(await amountsAt(payTo), [...before, '44'])
  for (let i = 0; i < 12; i++) await shop.mine()
  assert(BigInt((await readState()).safe) < (number ?? 0n))
  shop.first.lie = (_, result) => result
  for (let i = 0; i < 3; i++) await shop.mine()
  assert(BigInt((await readState()).safe) >= (number ?? 0n))
})

test('a node that takes ten blocks per search is asked for no more, and the chain is followed', async () => {
  for (const node of shop.nodes)
    node.lie = (call, result) => {
      if (!isSearch(call)) return result
      const { fromBlock = '0x0', toBlock = '0x0' } = call.params[0] as Filter
      const blocks = Number.parseInt(toBlock, 16) - Number.parseInt(fromBlock, 16) + 1
      return blocks > 10 ? new Error('up to a 10 block range') : result
    }
  await chain.mine(30)
  await give(payTo, 45n)
  await chain.mine(30)
  await until('the head', async () => {
    await shop.follow()
    return (await readState()).head === `${await chain.client.getBlockNumber()}`
  })
  assert.equal((await amountsAt(payTo)).at(-1), '45')
})

test('blocks far ahead that one node invented while the other was silent are given up once nobody has them', async () => {
  for (const node of shop.nodes) node.lie = (_, result) => result
  const [, second = assert.fail()] = shop.nodes
  const makeOld = () =>
    ctx.db.query("update followers set head_seen_at = head_seen_at - interval '10 seconds'")
  await shop.mine()
  const { head } = await readState()
  shop.first.liar = lies['a head far ahead']()
  second.fail('refused')
  await chain.mine()
  await makeOld()
  await until('the invented blocks are taken', async () => {
    await shop.follow()
    return BigInt((await readState()).head) > BigInt(head) + 10n
  })
  shop.first.liar = null
  second.heal()
  await chain.mine()
  await makeOld()
  await until('the true head', async () => {
    await shop.follow()
    return (await readState()).head === `${await chain.client.getBlockNumber()}`
  })
})
