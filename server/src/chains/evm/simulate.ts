import { decodeErrorResult } from 'viem/utils'
import { openBatcher } from '../../database/batch.ts'
import type { Hex } from '../hex.ts'
import { unwrap } from '../rpc.ts'
import {
  type Call,
  type CallResult,
  type Chain,
  decodeAggregate,
  multicall,
  readManyParams,
} from './chain.ts'
import { type Authorization, authorizationStateCalldata, transferCalldata } from './eip3009.ts'
import { isUnfunded } from './refusals.ts'

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

/**
 * The gas of a transaction that carries one contract wallet's payment. The wallet's code may burn all of it, so it is
 * less than three times what it costs to set up such a wallet. It is enough for a token's transfer and a wallet that
 * checks several signatures, or a passkey with the chain's own P-256 check.
 */
export const contractGas = 200_000n

/** A transaction as it would be sent. Without fees, the sender needs no money. */
type Send = {
  readonly to: string
  readonly data: Hex
  readonly gas: bigint
  readonly maxFeePerGas?: bigint
  readonly maxPriorityFeePerGas?: bigint
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
  return (transfer) => {
    if (!transfer.isContract) return joined(transfer)
    const data = transferCalldata(transfer.authorization, transfer.signature)
    return simulateSend(chain, from, transfer, { to: transfer.asset, data, gas: contractGas })
  }
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
 * Simulates a transfer as the transaction that would be sent: code at the payer's address can tell its gas, sender and
 * price. Throws if the sender cannot pay, which says nothing about the transfer.
 */
export async function simulateSend(
  chain: Chain,
  from: string,
  { asset, authorization }: SignedTransfer,
  send: Send,
): Promise<Simulated> {
  const { to, data, gas, maxFeePerGas, maxPriorityFeePerGas } = send
  const transaction = {
    ...{ from, to, data, gas: toQuantity(gas) },
    ...(maxFeePerGas !== undefined && { maxFeePerGas: toQuantity(maxFeePerGas) }),
    ...(maxPriorityFeePerGas !== undefined && { maxPriorityFeePerGas: toQuantity(maxPriorityFeePerGas) }),
  }
  const [read, sent] = await chain.rpc.batch([
    {
      method: 'eth_call',
      params: readManyParams([blockNumberCall, ...stateCalls({ asset, authorization })], from, 'latest'),
    },
    { method: 'eth_call', params: [transaction, 'latest'] },
  ])
  const [block, state, balance] = decodeAggregate(unwrap<Hex>(read))
  if (!sent || ('error' in sent && isUnfunded(sent.error))) unwrap(sent)
  const refusal = sent && 'error' in sent ? sent.error : null
  const returnData = typeof refusal?.data === 'string' ? (refusal.data as Hex) : '0x'
  return toSimulated(block, state, balance, { success: refusal === null, returnData })
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
    blockNumberCall,
    ...transfers.flatMap((transfer) => [
      ...stateCalls(transfer),
      { target: transfer.asset, callData: transferCalldata(transfer.authorization, transfer.signature) },
    ]),
  ]
  const results = decodeAggregate(
    await chain.rpc.call<Hex>('eth_call', readManyParams(calls, from, 'latest')),
  )
  return transfers.map((_, i) => {
    const [state, balance, transfer] = results.slice(1 + i * 3, 4 + i * 3)
    return toSimulated(results[0], state, balance, transfer)
  })
}

function stateCalls({ asset, authorization }: Pick<SignedTransfer, 'asset' | 'authorization'>): Call[] {
  return [
    { target: asset, callData: authorizationStateCalldata(authorization.from, authorization.nonce) },
    { target: asset, callData: `${balanceOf}${authorization.from.slice(2).padStart(64, '0')}` as Hex },
  ]
}

function toSimulated(
  block: CallResult | undefined,
  state: CallResult | undefined,
  balance: CallResult | undefined,
  transfer: CallResult | undefined,
): Simulated {
  if (!state?.success || !balance?.success || !transfer)
    throw new Error('the token does not answer like an EIP-3009 token')
  return {
    isGood: transfer.success,
    isNonceUsed: BigInt(state.returnData) !== 0n,
    balance: BigInt(balance.returnData),
    revertReason: transfer.success ? '' : readReason(transfer),
    blockNumber: Number.parseInt(block?.returnData ?? '0x0', 16),
  }
}

function toQuantity(value: bigint): Hex {
  return `0x${value.toString(16)}`
}

const blockNumberCall: Call = { target: multicall, callData: '0x42cbb15c' }
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
