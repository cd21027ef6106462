import { decodeErrorResult } from 'viem/utils'
import { openBatcher } from '../../database/batch.ts'
import type { Hex } from '../hex.ts'
import {
  type Call,
  type CallResult,
  type Chain,
  decodeAggregate,
  multicall,
  readManyParams,
} from './chain.ts'
import { type Authorization, authorizationStateCalldata, transferCalldata } from './eip3009.ts'

/** A signed transfer as it would be sent. */
export type SignedTransfer = {
  readonly asset: string
  readonly authorization: Authorization
  readonly signature: Hex
  /** Whether the payer's address has code: that code runs in the simulation, so the transfer is simulated alone. */
  readonly isContract: boolean
}

/** How the token would treat a transfer now. If no node answers, simulating throws instead. */
export type Simulated = {
  readonly isGood: boolean
  readonly isNonceUsed: boolean
  readonly balance: bigint
  /** The token's own message, if it refused. */
  readonly revertReason: string
  /** Block height of the node that answered. */
  readonly blockNumber: number
}

/** Keeps one eth_call below the request size that nodes accept. */
const transfersPerCall = 100
const callsInFlight = 4

export type Simulate = (transfer: SignedTransfer) => Promise<Simulated>

/** All transfers waiting at a moment are simulated in one call; a single transfer is simulated at once. */
export function openSimulate(chain: Chain, from: string): Simulate {
  const joined = openBatcher<SignedTransfer, Simulated>({
    run: (transfers) => simulateApart(chain, from, transfers),
    runAlone: (transfer) => simulateAlone(chain, from, transfer),
    itemsMax: transfersPerCall,
    inFlightMax: callsInFlight,
  })
  return (transfer) => (transfer.isContract ? simulateAlone(chain, from, transfer) : joined(transfer))
}

/**
 * Like simulateTransfers, but keeps payments that share a nonce apart: a payment that is presented twice at once would
 * find its nonce used by its own copy, and be refused while the copy is claimed. Copies share one verdict; different
 * payments with the same nonce are simulated in separate calls.
 */
async function simulateApart(
  chain: Chain,
  from: string,
  transfers: readonly SignedTransfer[],
): Promise<readonly Simulated[]> {
  const rounds: Map<string, SignedTransfer>[] = []
  const roundOf = new Map<string, number>()
  const nonces = new Map<string, number>()
  const ids = transfers.map((transfer) => {
    const { asset, authorization, signature } = transfer
    const id = `${asset} ${transferCalldata(authorization, signature)}`
    if (roundOf.has(id)) return id
    const nonce = `${asset} ${authorization.from} ${authorization.nonce}`
    const round = nonces.get(nonce) ?? 0
    nonces.set(nonce, round + 1)
    roundOf.set(id, round)
    rounds[round] = (rounds[round] ?? new Map()).set(id, transfer)
    return id
  })
  const verdicts = new Map<string, Simulated>()
  await Promise.all(
    rounds.map(async (round) => {
      const simulated = await simulateTransfers(chain, from, [...round.values()])
      for (const [i, id] of [...round.keys()].entries()) verdicts.set(id, simulated[i] as Simulated)
    }),
  )
  return ids.map((id) => verdicts.get(id) as Simulated)
}

export async function simulateAlone(
  chain: Chain,
  from: string,
  transfer: SignedTransfer,
): Promise<Simulated> {
  const [simulated] = await simulateTransfers(chain, from, [transfer])
  if (!simulated) throw new Error('a simulated transfer has no verdict')
  return simulated
}

/**
 * Simulates transfers in order, each on the state that the ones before it left, so that two transfers of one payer do
 * not both pass on a balance for one. Nonce and balance are read before their transfer.
 */
export async function simulateTransfers(
  chain: Chain,
  from: string,
  transfers: readonly SignedTransfer[],
): Promise<readonly Simulated[]> {
  const calls: Call[] = [
    { target: multicall, callData: getBlockNumber },
    ...transfers.flatMap(({ asset, authorization, signature }) => [
      { target: asset, callData: authorizationStateCalldata(authorization.from, authorization.nonce) },
      { target: asset, callData: `${balanceOf}${authorization.from.slice(2).padStart(64, '0')}` as Hex },
      { target: asset, callData: transferCalldata(authorization, signature) },
    ]),
  ]
  const results = decodeAggregate(
    await chain.rpc.call<Hex>('eth_call', readManyParams(calls, from, 'latest')),
  )
  const blockNumber = Number.parseInt(results[0]?.returnData ?? '0x0', 16)
  return transfers.map((_, i) => {
    const [state, balance, transfer] = results.slice(1 + i * 3, 4 + i * 3)
    if (!state?.success || !balance?.success || !transfer)
      throw new Error('the token does not answer like an EIP-3009 token')
    return {
      isGood: transfer.success,
      isNonceUsed: BigInt(state.returnData) !== 0n,
      balance: BigInt(balance.returnData),
      revertReason: transfer.success ? '' : readReason(transfer),
      blockNumber,
    }
  })
}

const getBlockNumber: Hex = '0x42cbb15c'
const balanceOf: Hex = '0x70a08231'

const errorAbi = [{ type: 'error', name: 'Error', inputs: [{ name: 'message', type: 'string' }] }] as const

function readReason({ returnData }: CallResult): string {
  try {
    return String(decodeErrorResult({ abi: errorAbi, data: returnData }).args[0])
  } catch {
    // Custom errors and empty reverts have no message; the transfer is refused without one.
    return ''
  }
}
