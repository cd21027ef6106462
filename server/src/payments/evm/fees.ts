import type { Unsigned } from '../../chains/evm/signer.ts'
import type { EvmNetwork } from '../../networks.ts'

export type Fees = Pick<Unsigned, 'maxFeePerGas' | 'maxPriorityFeePerGas'>

/** The tip per gas, in wei. Base includes transactions that offer this little. */
const tip = 1_000_000n

/** Leaves room for the base fee to double. */
export function freshFees(baseFee: bigint): Fees {
  return { maxFeePerGas: baseFee * 2n + tip, maxPriorityFeePerGas: tip }
}

/** Fresh fees under the network's cap. Null while even the base fee and tip are above it. */
export function cappedFees({ maxFeePerGas: cap }: EvmNetwork, baseFee: bigint): Fees | null {
  const fees = freshFees(baseFee)
  if (baseFee + tip > cap) return null
  return fees.maxFeePerGas > cap ? { ...fees, maxFeePerGas: cap } : fees
}

/**
 * Nodes replace a transaction only for a tenth more. We offer an eighth more, and at least what a new one would offer.
 */
export function raisedFees(before: Fees, baseFee: bigint): Fees {
  const raise = (fee: bigint) => fee + fee / 8n + 1n
  const raised = raise(before.maxFeePerGas)
  const fresh = freshFees(baseFee).maxFeePerGas
  return {
    maxFeePerGas: raised > fresh ? raised : fresh,
    maxPriorityFeePerGas: raise(before.maxPriorityFeePerGas),
  }
}
