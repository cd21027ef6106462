import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fillFeeMax } from '../../chains/evm/policy.ts'
import { type EvmNetwork, networks } from '../../networks.ts'
import { costOf } from './count-costs.ts'
import { cappedFees, fillFees, raisedFees } from './tend.ts'

const network = networks.find(({ id }) => id === 'BASE_MAINNET') as EvmNetwork
const cap = network.maxFeePerGas

test('a payment offers twice the base fee up to the cap, and nothing once the base fee is above it', () => {
  assert.equal(cappedFees(network, 1_000_000_000n)?.maxFeePerGas, 2_001_000_000n)
  assert.equal(cappedFees(network, cap - 1_000_000n)?.maxFeePerGas, cap)
  assert.equal(cappedFees(network, cap), null)
})

test('replacements rise by an eighth, each under its own absolute cap', () => {
  for (const [isFill, max] of [
    [false, cap],
    [true, fillFeeMax(network)],
  ] as const) {
    let fees = cappedFees(network, 1_000_000n)
    let highest = 0n
    for (let i = 0; fees; i++) {
      assert(i < 200, 'the fee rises without end')
      assert(fees.maxFeePerGas > highest && fees.maxFeePerGas <= max)
      highest = fees.maxFeePerGas
      fees = raisedFees(network, fees, 1_000_000n, isFill)
    }
    assert(highest > (max * 8n) / 10n, 'the cap is not used')
  }
})

test('no base fee lifts an empty transaction above its cap', () => {
  assert.equal(fillFees(network, cap * 1_000n).maxFeePerGas, fillFeeMax(network))
  const raised = raisedFees(network, { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }, cap * 1_000n, true)
  assert.equal(raised?.maxFeePerGas, fillFeeMax(network))
})

test('the cost of a transaction is its gas, its data and the operator’s fee', () => {
  const gas = { gasUsed: '0x186a0', effectiveGasPrice: '0xa' } as const
  assert.equal(costOf(gas), 1_000_000n)
  const onBase = { ...gas, l1Fee: '0x64', operatorFeeScalar: '0x2', operatorFeeConstant: '0x5' } as const
  assert.equal(costOf(onBase), 1_000_000n + 100n + 100_000n * 2n * 100n + 5n)
})
