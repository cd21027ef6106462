import type { RpcOutcome } from '../rpc.ts'
import type { Chain } from './chain.ts'

/** getL1FeeUpperBound(uint256 unsignedTxSize) and getOperatorFee(uint256 gasUsed). */
const dataFeeCall = '0xf1c7a58b'
const operatorFeeCall = '0x275aedd2'

/**
 * The most that a transaction of this size and gas costs beyond its gas: the fee for its data on the layer below, and
 * the operator's fee. Zero on networks that charge for gas alone.
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
  const told = await rpc.askAll([ask(dataFeeCall, BigInt(bytes)), ask(operatorFeeCall, gas)])
  const fees = told.flatMap(({ outcomes }) => sumIn(outcomes) ?? []).toSorted((a, b) => (a < b ? 1 : -1))
  // The highest fee that enough providers reach; they may be a block apart.
  const fee = fees[network.witnessesMin - 1] ?? fees.at(-1)
  // An unknown fee must not count as none.
  if (fee === undefined) throw new Error('the network’s GasPriceOracle does not answer; see networks.ts')
  return fee
}

/** Null if one of the answers is no number: without the contract, a node answers 0x. */
function sumIn(outcomes: readonly RpcOutcome[]): bigint | null {
  const answers = outcomes.map((outcome) => ('result' in outcome ? String(outcome.result) : ''))
  if (!answers.every((answer) => /^0x[0-9a-f]+$/i.test(answer))) return null
  return answers.reduce((sum, answer) => sum + BigInt(answer), 0n)
}
