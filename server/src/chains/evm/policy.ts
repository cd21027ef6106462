import type { EvmNetwork } from '../../networks.ts'
import type { Hex } from '../hex.ts'
import type { Guard } from '../signers/signing.ts'
import { batcher, deployData, deployer, readBatchGroups } from './batcher.ts'
import { decodeTransfer, transferCalldata } from './eip3009.ts'
import { aggregateCalldata, multicall, readAggregateCalldata } from './multicall.ts'

/**
 * Every form that a settler's key signs, no matter which process asks. A transaction is decoded completely, so that no
 * byte is left unexplained. None carries value.
 *
 *   one payment   a known token, transferWithAuthorization
 *   a batch       our batcher, or Multicall3's aggregate3, with such payments of known tokens only
 *   a fill        an empty transaction to the settler itself: uses up a nonce
 *   a deployment  of our batcher, through the deterministic deployer
 *
 * The payers' signatures decide where tokens go, so only gas is left to steal. It is limited by the number of payments,
 * per transaction and per day.
 */
export type Unsigned = {
  readonly to: string
  readonly data: Hex
  readonly nonce: number
  readonly gas: bigint
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

/** The most that one payment needs, in a batch or alone; a contract wallet's may need twice as much and goes alone. */
const paymentGasMax = 120_000n
const batchGasMax = 80_000n
const aloneGasMax = 200_000n
const fillGasMax = 21_000n
const deployGasMax = 200_000n

/**
 * The highest fee for an empty transaction that uses up a nonce, because everything behind that nonce waits for it: ten
 * times a payment's fee, for 21,000 gas.
 */
export function fillFeeMax(network: EvmNetwork): bigint {
  return network.maxFeePerGas * 10n
}

/** The reason why this account's key must not sign this, or null. If it may, the cost is counted. */
export function findRefusal(
  network: EvmNetwork,
  self: string,
  transaction: Unsigned,
  { limits, spending }: Guard,
): string | null {
  const { to, data, nonce, gas, maxFeePerGas, maxPriorityFeePerGas } = transaction
  const isFill = to.toLowerCase() === self && data === '0x'
  const allowed = isFill ? { gasMax: fillGasMax } : readCall(network, to.toLowerCase(), data)
  if ('refusal' in allowed) return allowed.refusal
  if (!Number.isSafeInteger(nonce) || nonce < 0) return `${nonce} is not a nonce`
  const gasMax = allowed.gasMax < limits.gasPerTransaction ? allowed.gasMax : limits.gasPerTransaction
  if (gas < 0n || gas > gasMax) return `gas ${gas} is above the limit of ${gasMax}`
  const feeMax = isFill ? fillFeeMax(network) : network.maxFeePerGas
  if (maxFeePerGas < 0n || maxFeePerGas > feeMax) return `fee ${maxFeePerGas} is above the limit of ${feeMax}`
  if (maxPriorityFeePerGas < 0n || maxPriorityFeePerGas > maxFeePerGas)
    return `tip ${maxPriorityFeePerGas} is above the fee`
  // Fees on test networks cost nothing.
  if (network.mode !== 'live') return null
  const units = gas * maxFeePerGas
  if (limits.etherPerTransaction !== null && units > limits.etherPerTransaction)
    return `it could cost ${units} wei, and one transaction may cost ${limits.etherPerTransaction}`
  const perDay = limits.etherPerDay
  return spending.take({ address: self, network: network.caip2, slot: `${nonce}`, units, perDay })
}

type Allowed = { readonly gasMax: bigint } | { readonly refusal: string }

function readCall(network: EvmNetwork, to: string, data: Hex): Allowed {
  const tokens = new Set(network.assets.map(({ address }) => address.toLowerCase()))
  if (to === deployer)
    return data === deployData
      ? { gasMax: deployGasMax }
      : { refusal: 'the deployer may only deploy the batcher' }
  if (tokens.has(to))
    return isTransfer(data)
      ? { gasMax: aloneGasMax }
      : { refusal: 'a token may only be called with transferWithAuthorization' }
  if (to !== batcher && to !== multicall) return { refusal: `a settler must not call ${to}` }
  const targets = to === batcher ? readBatch(data) : readAggregate(data)
  if (targets === null || targets.length === 0)
    return { refusal: 'a batch may only carry transferWithAuthorization' }
  const foreign = targets.find((target) => !tokens.has(target))
  if (foreign !== undefined) return { refusal: `${foreign} is not a known token` }
  return { gasMax: batchGasMax + paymentGasMax * BigInt(targets.length) }
}

/**
 * The tokens of a batch for the batcher, one for each payment; null if it is not a batch. Every byte of that form
 * belongs to a field, so it need not be written again to compare.
 */
function readBatch(data: Hex): string[] | null {
  const groups = readBatchGroups(data)
  if (!groups || groups.gasPerCall > paymentGasMax) return null
  return groups.tokens
}

/** The tokens of a batch for Multicall3; null if it is not exactly what aggregateCalldata writes. */
function readAggregate(data: Hex): string[] | null {
  return attempt(() => {
    const calls = readAggregateCalldata(data)
    if (!calls || aggregateCalldata(calls) !== data) return null
    return calls.every(({ callData }) => isTransfer(callData)) ? calls.map(({ target }) => target) : null
  })
}

/** Whether this is exactly what transferCalldata writes. */
function isTransfer(data: Hex): boolean {
  const isSame = attempt(() => {
    const read = decodeTransfer(data)
    return read && transferCalldata(read.authorization, read.signature, read.marker ?? '0x') === data
  })
  return isSame === true
}

/** The writers assert that everything fits. Here a failed assertion only means that the calldata is not ours. */
function attempt<Result>(read: () => Result): Result | null {
  try {
    return read()
  } catch {
    return null
  }
}
