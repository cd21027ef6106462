import { decodeFunctionData } from 'viem/utils'
import type { Hex } from '../hex.ts'
import { batcher, readBatchCalldata } from './batcher.ts'
import { readTransferCalldata } from './eip3009.ts'
import { multicall } from './multicall.ts'

/** The part of Multicall3 that lanes use where a chain has no batcher. */
const aggregate3 = [
  {
    type: 'function',
    name: 'aggregate3',
    stateMutability: 'payable',
    inputs: [
      {
        name: 'calls',
        type: 'tuple[]',
        components: [
          { name: 'target', type: 'address' },
          { name: 'allowFailure', type: 'bool' },
          { name: 'callData', type: 'bytes' },
        ],
      },
    ],
    outputs: [],
  },
] as const

type TransferCall = {
  readonly payer: Hex
  readonly nonce: Hex
  readonly signature: Hex
  readonly marker: Hex | null
}

/**
 * The transfers by authorization in a transaction, in every form that lanes send or ever sent: a call to a token, to
 * Multicall3, or to the batcher. Old calls stay on the chain forever, so no form may be removed. Empty if it is in none
 * of these forms.
 */
export function readCalls({ to, data }: { readonly to: Hex; readonly data: Hex }): TransferCall[] {
  if (to === batcher)
    return (readBatchCalldata(data) ?? []).map(({ authorization: { from, nonce }, signature, marker }) => ({
      payer: from,
      nonce,
      signature,
      marker,
    }))
  if (to !== multicall) return [readTransferCalldata(data)].flatMap((call) => call ?? [])
  try {
    const { args } = decodeFunctionData({ abi: aggregate3, data })
    return args[0].flatMap(({ callData }) => readTransferCalldata(callData.toLowerCase() as Hex) ?? [])
  } catch {
    // A Multicall3 call that is not ours.
    return []
  }
}
