import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { concat, getAddress, getContractAddress, type Hex, keccak256, pad } from 'viem'
import { settings } from '../../../contracts/compile.ts'
import { batcher, batcherCodeHash, deployData, deployer } from '../../../src/chains/evm/batcher.ts'
import { readArtifacts } from '../../../src/dev/local-chain.ts'

const { Batcher } = await readArtifacts()
assert(Batcher)

/** The instructions of a contract, without the data that PUSH instructions carry. */
function operationsOf(code: Hex): number[] {
  const bytes = Buffer.from(code.slice(2), 'hex')
  const found: number[] = []
  for (let i = 0; i < bytes.length; i++) {
    const operation = bytes[i] ?? 0
    found.push(operation)
    if (operation >= 0x60 && operation <= 0x7f) i += operation - 0x5f
  }
  return found
}

test('address, code hash and deployment follow from the compiled contract', () => {
  const salt = pad('0x', { size: 32 })
  const from = getAddress(deployer)
  const address = getContractAddress({ opcode: 'CREATE2', from, salt, bytecode: Batcher.bytecode })
  assert.equal(batcher, address.toLowerCase())
  assert.equal(batcherCodeHash, keccak256(Batcher.deployedBytecode))
  assert.equal(deployData, concat([salt, Batcher.bytecode]))
})

test('the docs state the address, the code hash and the compiler settings for an explorer', async () => {
  const docs = await readFile(new URL('../../../../docs/batcher.md', import.meta.url), 'utf8')
  const { version } = createRequire(import.meta.url)('solc/package.json')
  for (const stated of [
    getAddress(batcher),
    batcherCodeHash,
    getAddress(deployer),
    `solc ${version}`,
    `\`${settings.evmVersion}\``,
    `${settings.optimizer.runs.toLocaleString('en')} runs`,
  ])
    assert(docs.includes(stated), `docs/batcher.md does not state ${stated}`)
})

test('the batcher makes one kind of call, and has no storage, logs, owner or copies of returndata', () => {
  const operations = operationsOf(Batcher.deployedBytecode)
  const count = (operation: number) => operations.filter((found) => found === operation).length
  assert.equal(count(0xf1), 1, 'CALL')
  const forbidden = {
    SLOAD: 0x54,
    SSTORE: 0x55,
    TLOAD: 0x5c,
    TSTORE: 0x5d,
    LOG0: 0xa0,
    LOG1: 0xa1,
    LOG2: 0xa2,
    LOG3: 0xa3,
    LOG4: 0xa4,
    CREATE: 0xf0,
    CALLCODE: 0xf2,
    DELEGATECALL: 0xf4,
    CREATE2: 0xf5,
    STATICCALL: 0xfa,
    SELFDESTRUCT: 0xff,
    RETURNDATACOPY: 0x3e,
    CALLER: 0x33,
    ORIGIN: 0x32,
    TIMESTAMP: 0x42,
  }
  for (const [name, operation] of Object.entries(forbidden)) assert.equal(count(operation), 0, name)
})
