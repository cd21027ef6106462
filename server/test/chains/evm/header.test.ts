import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hex } from 'viem'
import { openChain, type RawHeader } from '../../../src/chains/evm/chain.ts'
import { canContain, isGenuine } from '../../../src/chains/evm/witnesses.ts'
import { parseNode } from '../../../src/config/parse.ts'
import { openEvm } from '../../support/chain/evm.ts'

const chain = await openEvm()
await chain.mint('0x000000000000000000000000000000000000dEaD', 5n)
const { rpc } = openChain(chain.network, [parseNode(chain.url)], () => new Date())
const header = await rpc.call<RawHeader>('eth_getBlockByNumber', ['latest', false])
const [log] = await chain.transferLogs()
assert(log)

test('a real header hashes to its name, and no longer does once any hashed field differs', () => {
  assert(isGenuine(header))
  const flipped = (hex: Hex) => `${hex.slice(0, -1)}${hex.endsWith('1') ? '2' : '1'}` as Hex
  for (const field of ['hash', 'parentHash', 'logsBloom', 'receiptsRoot', 'timestamp', 'baseFeePerGas'])
    assert(!isGenuine({ ...header, [field]: flipped(header[field] as Hex) }), field)
  assert(!isGenuine({ ...header, number: 'x' as Hex }))
})

test('a bloom filter contains the logs of its block, and excludes others', () => {
  const real = { address: log.address.toLowerCase() as Hex, topics: log.topics as Hex[] }
  assert(canContain(header, real))
  const other = `0x${'9'.repeat(64)}` as const
  assert(!canContain(header, { ...real, topics: [other] }))
  assert(canContain({ ...header, logsBloom: undefined }, { ...real, topics: [other] }), 'without a filter')
})
