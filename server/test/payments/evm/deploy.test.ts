import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { keccak256 } from 'viem'
import { batcher, batcherCodeHash, deployer } from '../../../src/chains/evm/batcher.ts'
import { openChain } from '../../../src/chains/evm/chain.ts'
import { checkChain } from '../../../src/chains/evm/check.ts'
import { openSigner } from '../../../src/chains/evm/signer.ts'
import { settlerCommand } from '../../../src/commands/operator.ts'
import { readSigners } from '../../../src/commands/signer.ts'
import { UsageError } from '../../../src/commands/usage.ts'
import { parseNode } from '../../../src/config/parse.ts'
import { openRails } from '../../../src/payments/rails.ts'
import { openProvider } from '../../chains/support/provider.ts'
import { atEnd } from '../../support/at-end.ts'
import { fundedKey } from '../../support/chain/evm.ts'
import { openChain as openTestChain } from '../../support/chain/open.ts'
import { openShop } from '../../support/shop.ts'

/** Its settler is the second account of the chain. */
const shop = await openShop({ worker: false })
const { client } = shop.chain
const folder = await mkdtemp(join(tmpdir(), 'farthing-deploy-'))
atEnd(() => rm(folder, { recursive: true }))

async function deploy(keys: readonly string[], network = 'LOCAL'): Promise<string> {
  const file = join(folder, 'keys')
  await writeFile(file, keys.join('\n'))
  return await settlerCommand(shop.ctx, ['deploy', network], {}, () => readSigners(file))
}

const remove = (address: `0x${string}`) => client.setCode({ address, bytecode: '0x' })
const nonceOf = (key: `0x${string}`) => client.getTransactionCount({ address: openSigner(key).address })

test('settler deploy puts the batcher at its address, and does nothing if it is there', async () => {
  const [settler, other] = [fundedKey(1), fundedKey(2)]
  await remove(batcher)
  assert.match(await deploy([settler, other]), new RegExp(`The batcher is at ${batcher}`))
  const code = await client.getCode({ address: batcher })
  assert.equal(keccak256(code ?? '0x'), batcherCodeHash)
  assert.deepEqual([await nonceOf(settler), await nonceOf(other)], [0, 1])

  assert.match(await deploy([settler, other]), /is at/)
  assert.match(await deploy([]), /is at/)
  assert.equal(await nonceOf(other), 1)
})

test('settler deploy says why it cannot deploy', async () => {
  const deployerCode = await client.getCode({ address: deployer })
  const refuses = async (keys: readonly string[], says: RegExp, network?: string) =>
    await assert.rejects(
      deploy(keys, network),
      (error) => error instanceof UsageError && says.test(error.message),
    )
  await remove(batcher)
  // A settler's own lane would use the same account nonce.
  await refuses([fundedKey(1)], /not a settler on LOCAL.*data 0x0000/)
  await refuses([], /SETTLER_KEYS_FILE/)
  await refuses([], /must be in NETWORKS/, 'BASE_MAINNET')
  await client.setCode({ address: batcher, bytecode: '0x00' })
  await refuses([fundedKey(2)], /is not the batcher’s/)
  await remove(batcher)
  await remove(deployer)
  await refuses([fundedKey(2)], /has no deterministic deployer at 0x4e59b4/)
  await client.setCode({ address: deployer, bytecode: deployerCode ?? '0x' })
})

test('settler deploy and settler add go by the latest block where a node has no pending one', async () => {
  const { url } = await openProvider(shop.chain.url, { refusedTags: ['pending'] })
  const ctx = { ...shop.ctx, config: { ...shop.ctx.config, nodes: { LOCAL: [parseNode(url)] } } }
  const key = fundedKey(3)
  const { address } = openSigner(key)
  await client.setNonce({ address, nonce: 7 })
  assert.equal(await openRails(ctx).get(shop.chain.network.caip2)?.readNonce(address), 7)
  await remove(batcher)
  // Nothing is created at an address that has created or sent something.
  await client.setNonce({ address: batcher, nonce: 0 })
  const file = join(folder, 'keys')
  await writeFile(file, key)
  assert.match(
    await settlerCommand(ctx, ['deploy', 'LOCAL'], {}, () => readSigners(file)),
    new RegExp(`The batcher is at ${batcher}`),
  )
})

test('a live network requires the batcher with exactly its code, another network does not', async () => {
  const live = await openTestChain({ network: 'BASE_MAINNET' })
  const chain = openChain(live.network, [parseNode(live.url)], () => new Date())
  assert.deepEqual(await checkChain(chain), [])
  for (const bytecode of ['0x', '0x00'] as const) {
    await live.client.setCode({ address: batcher, bytecode })
    const [difference, ...more] = await checkChain(chain)
    assert.deepEqual(more, [])
    assert.match(difference?.says ?? '', /batcher is not deployed/)
    assert.match(difference?.fix ?? '', /settler deploy BASE_MAINNET/)
  }
  await remove(batcher)
  assert.deepEqual(
    await checkChain(openChain(shop.chain.network, [parseNode(shop.chain.url)], () => new Date())),
    [],
  )
})
