/** The calldata of our batches, and that of Multicall3 for the same payments. */
import assert from 'node:assert/strict'
import { type Hex, parseTransaction } from 'viem'
import { batcher, readBatchCalldata } from '../server/src/chains/evm/batcher.ts'
import { transferCalldata } from '../server/src/chains/evm/eip3009.ts'
import { aggregateCalldata } from '../server/src/chains/evm/multicall.ts'

export type Calldata = { readonly perPayment: number; readonly ratio: number }

/** `transactions` are the signed bytes of our batches. */
export function measureCalldata(transactions: readonly Hex[]): Calldata {
  let [payments, ours, multicalls] = [0, 0, 0]
  for (const bytes of transactions) {
    const { to, data = '0x' } = parseTransaction(bytes)
    const read = to === batcher ? readBatchCalldata(data) : null
    assert(read, 'a batch did not go through the batcher')
    const calls = read.map(({ asset, authorization, signature, marker }) => ({
      target: asset,
      callData: transferCalldata(authorization, signature, marker ?? '0x'),
    }))
    payments += read.length
    ours += bytesIn(data)
    multicalls += bytesIn(aggregateCalldata(calls))
  }
  return { perPayment: ours / payments, ratio: ours / multicalls }
}

function bytesIn(hex: Hex): number {
  return (hex.length - 2) / 2
}
