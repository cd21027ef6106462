import { fillFeeMax, type Unsigned } from '../../chains/evm/policy.ts'
import type { EvmNetwork } from '../../networks.ts'

export type Fees = Pick<Unsigned, 'maxFeePerGas' | 'maxPriorityFeePerGas'>

/** The tip per gas, in wei. Base includes transactions that offer this little. */
const tip = 1_000_000n

/** Leaves room for the base fee to double. */
function freshFees(baseFee: bigint): Fees {
  return { maxFeePerGas: baseFee * 2n + tip, maxPriorityFeePerGas: tip }
}

/** Fresh fees under the network's cap. Null while even the base fee and tip are above it. */
export function cappedFees({ maxFeePerGas: cap }: EvmNetwork, baseFee: bigint): Fees | null {
  return baseFee + tip > cap ? null : under(cap, freshFees(baseFee))
}

/** Fresh fees for an empty transaction. Above its cap it is signed anyway, and waits until fees fall. */
export function fillFees(network: EvmNetwork, baseFee: bigint): Fees {
  return under(fillFeeMax(network), freshFees(baseFee))
}

/**
 * Nodes replace a transaction only for a tenth more. We offer an eighth more, and at least what a new one would offer.
 * Null above the cap: what the nodes have must do. Freeing a nonce is worth more than sending payments, so an empty
 * transaction has a higher cap.
 */
export function raisedFees(network: EvmNetwork, before: Fees, baseFee: bigint, isFill: boolean): Fees | null {
  const cap = isFill ? fillFeeMax(network) : network.maxFeePerGas
  const raise = (fee: bigint) => fee + fee / 8n + 1n
  const raised = raise(before.maxFeePerGas)
  if (raised > cap) return null
  const fresh = under(cap, freshFees(baseFee)).maxFeePerGas
  return {
    maxFeePerGas: raised > fresh ? raised : fresh,
    maxPriorityFeePerGas: raise(before.maxPriorityFeePerGas),
  }
}

function under(cap: bigint, { maxFeePerGas, maxPriorityFeePerGas }: Fees): Fees {
  return { maxFeePerGas: maxFeePerGas > cap ? cap : maxFeePerGas, maxPriorityFeePerGas }
}
