import type { Hex } from '../hex.ts'
import { unwrap } from '../rpc.ts'
import type { Chain } from './chain.ts'

/** getL1FeeUpperBound(uint256 unsignedTxSize) and getOperatorFee(uint256 gasUsed). */
const dataFeeCall = '0xf1c7a58b'
const operatorFeeCall = '0x275aedd2'

/**
 * The most that a transaction of this size and gas costs on top of its gas: for its data on the layer below, and for the
 * operator. Zero on networks that charge for gas alone.
 */
export async function readDataFee(
  { network, rpc }: Chain,
  { bytes, gas }: { readonly bytes: number; readonly gas: bigint },
): Promise<bigint> {
  const { gasPriceOracle } = network
  if (!gasPriceOracle) return 0n
  const ask = (call: string, argument: bigint) => ({
    method: 'eth_call',
    params: [{ to: gasPriceOracle, data: `${call}${argument.toString(16).padStart(64, '0')}` }, 'latest'],
  })
  const answers = await rpc.batch([ask(dataFeeCall, BigInt(bytes)), ask(operatorFeeCall, gas)])
  return answers.map((answer) => toFee(unwrap<Hex>(answer))).reduce((sum, fee) => sum + fee, 0n)
}

/** Throws if there is no such contract: a fee that is not known must not count as none. */
function toFee(answer: Hex): bigint {
  if (answer === '0x') throw new Error('the network’s GasPriceOracle does not answer; see networks.ts')
  return BigInt(answer)
}
