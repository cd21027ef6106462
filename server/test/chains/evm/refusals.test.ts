/** The words of two clients, from themselves: what they say today is understood as what it is. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData, parseGwei } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { isHeld, isRevert, isUnfunded, readRevert } from '../../../src/chains/evm/refusals.ts'
import { RpcAnswerError } from '../../../src/chains/rpc.ts'
import { startLocalChain } from '../../../src/dev/local-chain.ts'
import { networks } from '../../../src/networks.ts'
import { atEnd } from '../../support/at-end.ts'
import { startEdr } from '../../support/chain/edr.ts'
import { fundedKey, tokenAbi } from '../../support/chain/evm.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'

const network = networks.find(({ id }) => id === 'LOCAL')
assert(network?.family === 'EVM')
const { assets } = network
const [asset] = assets
assert(asset)
const chainId = 31_337

const options = { chainId, blockTimeSeconds: null, assets }
const clients = { anvil: await startLocalChain(options), EDR: await startEdr(options) }
for (const { stop } of Object.values(clients)) atEnd(stop)

for (const [client, { url }] of Object.entries(clients)) {
  const ask = async (method: string, ...params: unknown[]) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const answer = await fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    return (await answer.json()) as { error?: { code: number; message: string; data?: unknown } }
  }
  const refusal = async (method: string, ...params: unknown[]) => {
    const { error } = await ask(method, ...params)
    assert(error, `${client} did not refuse`)
    return new RpcAnswerError(error.code, error.message, error.data)
  }
  const transfer = async (account: ReturnType<typeof privateKeyToAccount>, nonce: number, gwei: string) =>
    await account.signTransaction({
      chainId,
      nonce,
      to: account.address,
      gas: 21_000n,
      maxFeePerGas: parseGwei(gwei),
      maxPriorityFeePerGas: 1n,
    })

  test(`${client} says that a sender cannot pay`, async () => {
    const poor = privateKeyToAccount(newPayer().key)
    const error = await refusal('eth_sendRawTransaction', await transfer(poor, 0, '10'))
    assert.deepEqual([isUnfunded(error), isHeld(error), isRevert(error)], [true, false, false], error.message)
  })

  test(`${client} says that it has a transaction, or that its place is taken`, async () => {
    const rich = privateKeyToAccount(fundedKey(6))
    const first = await transfer(rich, 0, '10')
    assert.equal((await ask('eth_sendRawTransaction', first)).error, undefined)
    const again = await refusal('eth_sendRawTransaction', first)
    const underpriced = await refusal('eth_sendRawTransaction', await transfer(rich, 0, '9'))
    await ask('anvil_mine', '0x1')
    const used = await refusal('eth_sendRawTransaction', await transfer(rich, 0, '20'))
    for (const error of [again, underpriced, used])
      assert.deepEqual(
        [isUnfunded(error), isHeld(error), isRevert(error)],
        [false, true, false],
        error.message,
      )
  })

  test(`${client} says that code has failed, and what it returned`, async () => {
    const args = [newPayer().address, 1n] as const
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args })
    const error = await refusal('eth_call', { to: asset.address, data }, 'latest')
    assert.deepEqual([isUnfunded(error), isHeld(error), isRevert(error)], [false, false, true], error.message)
    // The selector of Error(string).
    assert.match(readRevert(error), /^0x08c379a0/)
  })
}
