/**
 * A local chain in place of Base, at port 8545, for `deploying.ts`: `node base-chain.ts NETWORK ADDRESS` gives the
 * address a dollar. It runs until it is killed.
 */
import assert from 'node:assert/strict'
import { type Address, createWalletClient, encodeFunctionData, http } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import { startLocalChain } from '../../src/dev/local-chain.ts'
import { networks } from '../../src/networks.ts'

const network = networks.find(({ id }) => id === process.argv[2])
assert(network?.family === 'EVM')
const [asset = assert.fail()] = network.assets
const chainId = Number.parseInt(network.caip2.replace('eip155:', ''), 10)
const { url } = await startLocalChain({
  chainId,
  blockTimeSeconds: 1,
  port: 8545,
  assets: network.assets,
})
/** The tenth account of the test mnemonic may mint on local chains. */
const minter = mnemonicToAccount('test test test test test test test test test test test junk', {
  addressIndex: 9,
})
const abi = [
  {
    type: 'function',
    name: 'mint',
    stateMutability: 'nonpayable',
    inputs: [
      { name: 'to', type: 'address' },
      { name: 'value', type: 'uint256' },
    ],
    outputs: [{ name: '', type: 'bool' }],
  },
] as const
const data = encodeFunctionData({ abi, functionName: 'mint', args: [process.argv[3] as Address, 1_000_000n] })
await createWalletClient({ account: minter, transport: http(url) }).sendTransaction({
  to: asset.address as Address,
  data,
  chain: null,
})
process.stdout.write('the chain runs\n')
// The chain itself does not keep this process alive.
setInterval(() => {}, 60_000)
