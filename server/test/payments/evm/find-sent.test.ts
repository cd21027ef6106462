import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData, type Hex } from 'viem'
import { openChain } from '../../../src/chains/evm/chain.ts'
import { topics } from '../../../src/chains/evm/eip3009.ts'
import { findSent } from '../../../src/payments/evm/refund.ts'
import { openTestApp } from '../../support/app.ts'
import { openEvm, tokenAbi } from '../../support/chain/evm.ts'
import { openFaultyNode } from '../../support/faulty-node.ts'

/** A network on which two providers must agree. */
const evm = await openEvm({ network: 'BASE_MAINNET' })
const { ctx } = await openTestApp({ NETWORKS: 'BASE_MAINNET' })
const from = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'.toLowerCase()
const recipient = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'.toLowerCase()
const asset = evm.token.toLowerCase()
const amount = 5_000_000n

async function open() {
  const nodes = [await openFaultyNode(evm.url), await openFaultyNode(evm.url)] as const
  const network = evm.network
  assert(network.family === 'EVM' && network.witnessesMin === 2)
  const named = nodes.map(({ url }, i) => ({ provider: `node-${i}`, url }))
  return { nodes, chain: openChain(network, named, ctx.now) }
}

async function send(): Promise<Hex> {
  await evm.mint(from as Hex, amount)
  const data = encodeFunctionData({
    abi: tokenAbi,
    functionName: 'transfer',
    args: [recipient as Hex, amount],
  })
  const { transactionHash, blockNumber } = await evm.perform({ to: evm.token, data })
  await ctx.db.query(
    `insert into followers (network, finalized_number) values ($1, $2)
     on conflict (network) do update set finalized_number = $2`,
    [evm.network.caip2, blockNumber.toString()],
  )
  return transactionHash
}

const wanted = (transaction: Hex) => ({
  transaction,
  asset,
  recipient,
  amount,
  wallets: [from],
  notBefore: new Date(0),
})

test('a transfer is found if enough providers tell it, and awaited while one is silent or behind', async () => {
  const { nodes, chain } = await open()
  const transaction = await send()
  assert.equal((await findSent(ctx, chain, wanted(transaction))).outcome, 'found')
  for (const fault of ['refused', 'internal', 'null'] as const) {
    nodes[1].choose = () => fault
    assert.equal((await findSent(ctx, chain, wanted(transaction))).outcome, 'waiting', fault)
  }
  nodes[1].choose = () => null
  await ctx.db.query('update followers set finalized_number = finalized_number - 1')
  assert.equal((await findSent(ctx, chain, wanted(transaction))).outcome, 'waiting', 'not final yet')
})

test('a transaction that no provider has is unknown, and one provider alone can neither invent nor hide a transfer', async () => {
  const { nodes, chain } = await open()
  const transaction = await send()
  const invented: Hex = `0x${'ab'.repeat(32)}`
  assert.equal((await findSent(ctx, chain, wanted(invented))).outcome, 'unknown')
  const receipt = await evm.client.getTransactionReceipt({ hash: transaction })
  const pad = (address: string) => `0x${address.slice(2).padStart(64, '0')}`
  nodes[0].lie = ({ method, params }, result) => {
    if (method === 'eth_getTransactionReceipt' && params[0] === invented)
      return { blockNumber: `0x${receipt.blockNumber.toString(16)}`, blockHash: receipt.blockHash }
    if (method !== 'eth_getLogs') return result
    const log = {
      address: asset,
      topics: [topics.transfer, pad(from), pad(recipient)],
      data: `0x${amount.toString(16).padStart(64, '0')}`,
      blockHash: receipt.blockHash,
      transactionHash: invented,
      logIndex: '0x63',
    }
    return [...(result as object[]), log]
  }
  assert.notEqual((await findSent(ctx, chain, wanted(invented))).outcome, 'found')

  const hiding = await open()
  hiding.nodes[0].lie = ({ method }, result) => (method === 'eth_getTransactionReceipt' ? null : result)
  assert.equal((await findSent(ctx, hiding.chain, wanted(transaction))).outcome, 'found')
  hiding.nodes[0].lie = ({ method }, result) => (method === 'eth_getLogs' ? [] : result)
  assert.equal((await findSent(ctx, hiding.chain, wanted(transaction))).outcome, 'waiting')
})
