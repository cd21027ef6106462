import assert from 'node:assert/strict'
import { batchCalldata, batcher, isPackable } from '../../chains/evm/batcher.ts'
import { transferCalldata } from '../../chains/evm/eip3009.ts'
import { aggregateCalldata, multicall } from '../../chains/evm/multicall.ts'
import type { Unsigned } from '../../chains/evm/policy.ts'
import { contractGas } from '../../chains/evm/simulate.ts'
import { markerOf } from '../../ids.ts'
import { toSafeNumber } from '../../safe-number.ts'
import type { Authorized } from '../rows.ts'

/** EIP-7825: a chain with this cap refuses a transaction whose gas limit is higher. Base has it. */
const transactionGasMax = 16_777_216n

/**
 * The most that one call of the batcher may use. An ordinary wallet's payment needs at most 80,000 on Circle's token:
 * the first in its batch, to a wallet that never held the token.
 */
export const callGas = 100_000n
/** Per call in addition: at most 196 bytes of calldata at 16 gas each, and the batcher's own steps. */
const callOverheadGas = 4_000n
/** The transaction itself, first access to the tokens, and the 64th that the last call leaves behind. */
const batchGas = 40_000n

/** In Multicall3 the calls share what the transaction has, so each brings room to spare: unused gas costs nothing. */
const sharedCallGas = 120_000n
const sharedBatchGas = 80_000n

const aloneGas = 200_000n

/** A full batch: what a settler that counts as ready must be able to pay up front. */
export const fullBatch = {
  payments: countFitting(true),
  gas: transactionGasMax,
  /** About 200 bytes per payment; without the batcher, where no data fee is charged, it is more. */
  bytes: 32_000,
} as const

/** How many authorizations fit into one transaction, if each used all the gas it may use. */
export function countFitting(hasBatcher: boolean): number {
  const fitting = hasBatcher
    ? (transactionGasMax - batchGas) / (callGas + callOverheadGas)
    : (transactionGasMax - sharedBatchGas) / sharedCallGas
  return toSafeNumber(fitting)
}

/** Whether an authorization can share a transaction with others. */
export function canShare({ transfer }: Authorized): boolean {
  return !transfer.isContract && isPackable(transfer)
}

/**
 * The call that settles these authorizations: one goes straight to its token; several go through the batcher, or
 * through Multicall3 where the batcher is missing. In both, each may fail alone.
 */
export function toCall(
  hasBatcher: boolean,
  carried: readonly Authorized[],
): Pick<Unsigned, 'to' | 'data' | 'gas'> {
  const [single] = carried
  const count = BigInt(carried.length)
  assert(carried.length <= countFitting(hasBatcher), 'the batch is too large for one transaction')
  if (single && carried.length === 1)
    return {
      to: single.transfer.asset,
      data: aloneCalldata(single),
      gas: single.transfer.isContract ? contractGas : aloneGas,
    }
  if (hasBatcher) {
    const payments = carried.map(({ transfer, checkoutId }) => ({
      ...transfer,
      marker: checkoutId ? markerOf(checkoutId) : null,
    }))
    const gas = batchGas + (callGas + callOverheadGas) * count
    return { to: batcher, data: batchCalldata(payments, callGas), gas }
  }
  const calls = carried.map((authorized) => ({
    target: authorized.transfer.asset,
    callData: aloneCalldata(authorized),
  }))
  return { to: multicall, data: aggregateCalldata(calls), gas: sharedBatchGas + sharedCallGas * count }
}

function aloneCalldata({ transfer, checkoutId }: Authorized) {
  return transferCalldata(
    transfer.authorization,
    transfer.signature,
    checkoutId ? markerOf(checkoutId) : '0x',
  )
}
