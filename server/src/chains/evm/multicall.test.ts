import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeFunctionData, encodeFunctionData, encodeFunctionResult, type Hex, parseAbi } from 'viem'
import { RpcUnavailableError } from '../rpc.ts'
import { aggregateCalldata, decodeAggregate } from './multicall.ts'

const abi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) payable returns (Result[] returnData)',
])
const bytes = (minLength: number, maxLength: number) =>
  fc.uint8Array({ minLength, maxLength }).map((array): Hex => `0x${Buffer.from(array).toString('hex')}`)
const anyCalls = fc.array(fc.record({ target: bytes(20, 20), callData: bytes(0, 100) }), { maxLength: 20 })
const anyResults = fc.array(fc.record({ success: fc.boolean(), returnData: bytes(0, 100) }), {
  maxLength: 20,
})

test('the calldata is what a general ABI library writes', () => {
  fc.assert(
    fc.property(anyCalls, (calls) => {
      const data = aggregateCalldata(calls)
      const args = calls.map((call) => ({ ...call, allowFailure: true }))
      assert.equal(data, encodeFunctionData({ abi, functionName: 'aggregate3', args: [args] }))
      assert.equal(decodeFunctionData({ abi, data }).args?.[0]?.length, calls.length)
    }),
  )
})

test('a result is read as it was returned', () => {
  fc.assert(
    fc.property(anyResults, (results) => {
      const data = encodeFunctionResult({ abi, functionName: 'aggregate3', result: results })
      assert.deepEqual(
        decodeAggregate(data),
        results.map(({ success, returnData }) => ({ success, returnData })),
      )
    }),
  )
})

test('an answer that was cut, changed or made up is refused or read within its bounds, and never hangs', () => {
  const word = fc.oneof(
    bytes(32, 32).map((hex) => hex.slice(2)),
    fc.nat(2_000).map((number) => number.toString(16).padStart(64, '0')),
  )
  const madeUp = fc.array(word, { maxLength: 40 }).map((words): Hex => `0x${words.join('')}`)
  const cut = fc.tuple(anyResults, fc.nat(400)).map(([result, digits]): Hex => {
    const data = encodeFunctionResult({ abi, functionName: 'aggregate3', result })
    return data.slice(0, -digits || undefined) as Hex
  })
  fc.assert(
    fc.property(fc.oneof(madeUp, cut, fc.string() as fc.Arbitrary<Hex>), (data) => {
      try {
        for (const { returnData } of decodeAggregate(data))
          assert(data.toLowerCase().includes(returnData.slice(2)))
      } catch (error) {
        assert(error instanceof RpcUnavailableError, String(error))
      }
    }),
    { numRuns: 2_000 },
  )
  for (const data of ['0x', '0x00', `0x${'0'.repeat(63)}`, `0x${'f'.repeat(64)}`] as const)
    assert.throws(() => decodeAggregate(data), RpcUnavailableError)
})
