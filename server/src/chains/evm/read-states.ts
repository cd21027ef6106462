import type { Hex } from '../hex.ts'
import type { Chain } from './chain.ts'
import { authorizationStateCalldata } from './eip3009.ts'
import { decodeAggregate, readManyParams } from './multicall.ts'

/** Whether each nonce is used at a block; null if too few nodes answered or they disagree. */
export async function readStates(
  chain: Chain,
  blockHash: Hex,
  transfers: readonly { asset: string; authorization: { from: Hex; nonce: Hex } }[],
): Promise<(boolean | null)[]> {
  const calls = transfers.map(({ asset, authorization }) => ({
    target: asset,
    callData: authorizationStateCalldata(authorization.from, authorization.nonce),
  }))
  const zero = '0x0000000000000000000000000000000000000000'
  const answers = await chain.rpc.callAll<Hex>('eth_call', readManyParams(calls, zero, { blockHash }))
  const decoded = answers.map((answer) => decodeAggregate(answer))
  return transfers.map((_, i) => {
    const said = decoded.map((results) => (results[i]?.success ? BigInt(results[i].returnData) !== 0n : null))
    const [first] = said
    const isAgreed = said.length >= chain.network.witnessesMin && said.every((state) => state === first)
    return isAgreed && first !== undefined ? first : null
  })
}
