import { decodeFunctionResult, encodeFunctionData } from 'viem/utils'
import type { EvmNetwork } from '../../networks.ts'
import type { Hex } from '../hex.ts'
import { openRpc, type Rpc, type RpcOutcome, RpcUnavailableError, unwrap } from '../rpc.ts'

/** One EVM chain and its nodes. All hex that is compared is lower case. */
export type Chain = {
  readonly network: EvmNetwork
  /** The number in the CAIP-2 identifier, which payers sign. */
  readonly chainId: number
  readonly rpc: Rpc
}

export type Block = {
  readonly number: number
  readonly hash: Hex
  readonly parentHash: Hex
  readonly time: Date
  readonly baseFee: bigint
}

export type Log = {
  readonly address: Hex
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly blockHash: Hex
  readonly transactionHash: Hex
  readonly logIndex: number
}

export const multicall: Hex = '0xca11bde05977b3631167028862be2a173976ca11'

export function openChain(network: EvmNetwork, urls: readonly string[], now: () => Date): Chain {
  const chainId = Number.parseInt(network.caip2.slice('eip155:'.length), 10)
  const identity = {
    name: `${chainId}`,
    method: 'eth_chainId',
    isOurs: (answer: unknown) => answer === `0x${chainId.toString(16)}`,
  }
  return { network, chainId, rpc: openRpc(urls, identity, now) }
}

type RawBlock = { number: Hex; hash: Hex; parentHash: Hex; timestamp: Hex; baseFeePerGas?: Hex } | null

function toBlock(raw: RawBlock): Block | null {
  if (!raw) return null
  return {
    number: Number.parseInt(raw.number, 16),
    hash: raw.hash.toLowerCase() as Hex,
    parentHash: raw.parentHash.toLowerCase() as Hex,
    time: new Date(Number.parseInt(raw.timestamp, 16) * 1_000),
    baseFee: BigInt(raw.baseFeePerGas ?? '0x0'),
  }
}

export type Heads = {
  readonly latest: Block
  readonly safe: number
  readonly finalized: number
}

/**
 * The chain's heads, in one request. Nodes without a safe or finalized block yet answer null, which reads as block 0.
 */
export async function readHeads(chain: Chain): Promise<Heads | null> {
  const outcomes = await chain.rpc.batch([
    { method: 'eth_getBlockByNumber', params: ['latest', false] },
    { method: 'eth_getBlockByNumber', params: ['safe', false] },
    { method: 'eth_getBlockByNumber', params: ['finalized', false] },
  ])
  const latest = toBlock(unwrap<RawBlock>(outcomes[0]))
  if (!latest) return null
  return { latest, safe: numberOr(outcomes[1], 0), finalized: numberOr(outcomes[2], 0) }
}

export async function readHeadNumber(chain: Chain): Promise<number> {
  return Number.parseInt(await chain.rpc.call<Hex>('eth_blockNumber', []), 16)
}

/** Account nonces after a block: how many transactions of each account have been mined by then. */
export async function readNonces(
  chain: Chain,
  accounts: readonly string[],
  number: number,
): Promise<number[]> {
  const at = `0x${number.toString(16)}`
  const outcomes = await chain.rpc.batch(
    accounts.map((account) => ({ method: 'eth_getTransactionCount', params: [account, at] })),
  )
  return outcomes.map((outcome) => Number.parseInt(unwrap<Hex>(outcome), 16))
}

function numberOr(outcome: RpcOutcome | undefined, fallback: number): number {
  if (!outcome || 'error' in outcome) return fallback
  return toBlock(outcome.result as RawBlock)?.number ?? fallback
}

export async function readBlocks(chain: Chain, numbers: readonly number[]): Promise<(Block | null)[]> {
  const outcomes = await chain.rpc.batch(
    numbers.map((number) => ({
      method: 'eth_getBlockByNumber',
      params: [`0x${number.toString(16)}`, false],
    })),
  )
  return outcomes.map((outcome) => toBlock(unwrap<RawBlock>(outcome)))
}

type RawLog = { address: Hex; topics: Hex[]; data: Hex; blockHash: Hex; transactionHash: Hex; logIndex: Hex }

/**
 * Logs of our tokens in the blocks with these hashes, in order within each block. A hash that the node has dropped is
 * an error.
 */
export async function readLogs(
  chain: Chain,
  hashes: readonly Hex[],
  topics: readonly Hex[],
  ask = chain.rpc.batch,
): Promise<Log[][]> {
  const outcomes = await ask(
    hashes.map((blockHash) => ({
      method: 'eth_getLogs',
      params: [{ blockHash, address: tokensOf(chain), topics: [topics] }],
    })),
  )
  return outcomes.map((outcome) => toLogs(unwrap<RawLog[]>(outcome)))
}

/** The same for one block, combined from all nodes; a log may occur more than once. */
export async function readLogsOfAll(chain: Chain, blockHash: Hex, topics: readonly Hex[]): Promise<Log[]> {
  const params = [{ blockHash, address: tokensOf(chain), topics: [topics] }]
  return toLogs((await chain.rpc.callAll<RawLog[]>('eth_getLogs', params)).flat())
}

function tokensOf(chain: Chain): string[] {
  return chain.network.assets.map((asset) => asset.address)
}

function toLogs(raw: readonly RawLog[]): Log[] {
  return raw
    .map((log) => ({
      address: log.address.toLowerCase() as Hex,
      topics: log.topics.map((topic) => topic.toLowerCase() as Hex),
      data: log.data.toLowerCase() as Hex,
      blockHash: log.blockHash.toLowerCase() as Hex,
      transactionHash: log.transactionHash.toLowerCase() as Hex,
      logIndex: Number.parseInt(log.logIndex, 16),
    }))
    .sort((a, b) => a.logIndex - b.logIndex)
}

export type Call = { readonly target: string; readonly callData: Hex }
export type CallResult = { readonly success: boolean; readonly returnData: Hex }

export const aggregate3 = [
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
    outputs: [
      {
        name: 'returnData',
        type: 'tuple[]',
        components: [
          { name: 'success', type: 'bool' },
          { name: 'returnData', type: 'bytes' },
        ],
      },
    ],
  },
] as const

/** Multicall3 calldata for calls that may each fail alone. */
export function aggregateCalldata(calls: readonly Call[]): Hex {
  const args = calls.map(({ target, callData }) => ({ target: target as Hex, allowFailure: true, callData }))
  return encodeFunctionData({ abi: aggregate3, functionName: 'aggregate3', args: [args] })
}

export function decodeAggregate(data: Hex): readonly CallResult[] {
  try {
    return decodeFunctionResult({ abi: aggregate3, functionName: 'aggregate3', data })
  } catch (cause) {
    throw new RpcUnavailableError('A node returned something that is not a Multicall3 result.', { cause })
  }
}

/**
 * Code that is only called, never deployed. It returns the code size at each of the addresses that follow it, one word
 * per address: copy them to memory; for each word load it, EXTCODESIZE, store the size in its place; return them.
 */
const codeSizes =
  '60213803806021 5f39 5f 5b 8181 1015 601d57 8051 3b 8152 602001 600a56 5b 50 5f f3'.replaceAll(' ', '')

/** Whether each address has code, in one call. */
export async function readHasCode(chain: Chain, addresses: readonly Hex[]): Promise<boolean[]> {
  const words = addresses.map((address) => address.slice(2).padStart(64, '0'))
  const data = `0x${codeSizes}${words.join('')}`
  const answer = await chain.rpc.call<Hex>('eth_call', [{ data, gas: simulationGas }, 'latest'])
  return addresses.map((_, i) => BigInt(`0x${answer.slice(2 + i * 64, 66 + i * 64)}`) !== 0n)
}

/** Generous for a simulation, and below what common nodes allow. */
const simulationGas = '0x2625a00'

/** Parameters for many reads in one eth_call, at a block tag or, by hash, at exactly one block. */
export function readManyParams(
  calls: readonly Call[],
  from: string,
  at: string | { blockHash: Hex },
): readonly unknown[] {
  return [{ from, to: multicall, data: aggregateCalldata(calls), gas: simulationGas }, at]
}
