import type { Node } from '../../config/parse.ts'
import type { EvmNetwork } from '../../networks.ts'
import { enoughOf, isMost } from '../agree.ts'
import type { Hex } from '../hex.ts'
import { openRpc } from '../open-rpc.ts'
import {
  type NoteOutcome,
  type ProviderAnswer,
  type Rpc,
  type RpcCall,
  type RpcOutcome,
  RpcUnavailableError,
} from '../rpc.ts'
import { readGas } from './multicall.ts'

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

/** A block header as nodes return it. */
export type RawHeader = { readonly number: Hex; readonly hash: Hex; readonly parentHash: Hex } & Readonly<
  Record<string, unknown>
>

/** A block as a provider reported it, with the header that proves or disproves it. */
export type ToldBlock = Block & { readonly header: RawHeader }

/** A log as a node returns it, with its index as a number. */
export type ChainLog = {
  readonly address: Hex
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly blockHash: Hex
  readonly transactionHash: Hex
  readonly logIndex: number
}

export function openChain(
  network: EvmNetwork,
  nodes: readonly Node[],
  now: () => Date,
  noteOutcome?: NoteOutcome,
): Chain {
  const chainId = Number.parseInt(network.caip2.slice('eip155:'.length), 10)
  const identity = {
    name: `${chainId}`,
    method: 'eth_chainId',
    isOurs: (answer: unknown) => answer === `0x${chainId.toString(16)}`,
    tells,
  }
  return { network, chainId, rpc: openRpc(nodes, identity, now, noteOutcome) }
}

const blockReads = new Set(['eth_blockNumber', 'eth_getBlockByNumber', 'eth_getBlockByHash', 'eth_getLogs'])

/** A block's hash shows which chain it is from. So does state that was asked for by a block's hash. */
function tells({ method, params, isHint }: RpcCall): boolean {
  const at = params.at(-1)
  return (
    isHint === true || blockReads.has(method) || (typeof at === 'object' && at !== null && 'blockHash' in at)
  )
}

type BlockAnswer = (RawHeader & { readonly timestamp: Hex; readonly baseFeePerGas?: Hex }) | null

/** Null if the node has no such block, or answered something that is not a block. */
function toBlock(raw: BlockAnswer): ToldBlock | null {
  if (![raw?.hash, raw?.parentHash, raw?.number, raw?.timestamp].every(isHex) || !raw) return null
  return {
    number: Number.parseInt(raw.number, 16),
    hash: raw.hash.toLowerCase() as Hex,
    parentHash: raw.parentHash.toLowerCase() as Hex,
    time: new Date(Number.parseInt(raw.timestamp, 16) * 1_000),
    baseFee: BigInt(raw.baseFeePerGas ?? '0x0'),
    header: raw,
  }
}

function isHex(text: unknown): boolean {
  return typeof text === 'string' && /^0x[0-9a-f]+$/i.test(text)
}

/** Asks for a block by its number or by a tag such as `finalized`. */
export function blockCall(at: number | string): RpcCall {
  const block = typeof at === 'number' ? `0x${at.toString(16)}` : at
  return { method: 'eth_getBlockByNumber', params: [block, false] }
}

/** Asks for the logs of our tokens in the block with this hash. A hash that the node does not have is an error. */
export function logsCall(chain: Chain, blockHash: Hex, topics: readonly Hex[]): RpcCall {
  const address = chain.network.assets.map((asset) => asset.address)
  return { method: 'eth_getLogs', params: [{ blockHash, address, topics: [topics] }] }
}

/** A block in which a provider reports something. */
export type BlockPlace = { readonly number: number; readonly hash: Hex }

/**
 * The newest block, from the provider whose turn it is; null if it has no block. And the blocks up to that one in which
 * it has these transactions. That only says where to look.
 */
export async function readHead(
  chain: Chain,
  turn: number,
  transactions: readonly Hex[] = [],
): Promise<{ readonly head: ToldBlock | null; readonly places: readonly BlockPlace[] }> {
  const receipts = transactions.map(
    (hash): RpcCall => ({ method: 'eth_getTransactionReceipt', params: [hash], isHint: true }),
  )
  const [latest, ...told] = await chain.rpc.batch([blockCall('latest'), ...receipts], turn)
  const head = blockIn(latest)
  const places = told.flatMap((outcome) => placeIn('result' in outcome ? outcome.result : null) ?? [])
  const known = places.filter(({ number }) => head !== null && number <= head.number)
  return { head, places: [...new Map(known.map((place) => [place.hash, place])).values()] }
}

/** The block that a receipt names. Null if the transaction is in none, or if the answer is no receipt. */
export function placeIn(receipt: unknown): BlockPlace | null {
  const { blockHash, blockNumber } = (receipt ?? {}) as {
    readonly blockHash?: Hex
    readonly blockNumber?: Hex
  }
  const number = Number.parseInt(String(blockNumber), 16)
  if (!isHex(blockHash) || !Number.isSafeInteger(number) || number < 0) return null
  return { hash: String(blockHash).toLowerCase() as Hex, number }
}

/** The block in an answer. A provider that answers with an error does not have it. */
export function blockIn(outcome: RpcOutcome | undefined): ToldBlock | null {
  return !outcome || 'error' in outcome ? null : toBlock(outcome.result as BlockAnswer)
}

type RawLog = { address: Hex; topics: Hex[]; data: Hex; blockHash: Hex; transactionHash: Hex; logIndex: Hex }

/** Sorted by their place in the block. */
export function toLogs(raw: readonly RawLog[]): ChainLog[] {
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

/**
 * Code that is only called, never deployed. It returns the code size at each of the addresses that follow it, one word
 * per address: copy them to memory; for each word load it, EXTCODESIZE, store the size in its place; return them.
 */
const codeSizes =
  '60213803806021 5f39 5f 5b 8181 1015 601d57 8051 3b 8152 602001 600a56 5b 50 5f f3'.replaceAll(' ', '')

/**
 * Whether each address has code, in one call. Enough providers must agree: if an address has no code, a signature by
 * another account is refused; if it has code, the signature is shown to nodes before it is sent.
 */
export async function readHasCode(chain: Chain, addresses: readonly Hex[]): Promise<boolean[]> {
  return await readSizes(chain, addresses, (size) => size !== 0n)
}

/**
 * An account that has delegated itself (EIP-7702) has 23 bytes of code: 0xef0100 and an address. Its owner may end
 * that.
 */
const delegationBytes = 23n

/** Whether each address has code that it can't lose. An account that has delegated itself can lose it. */
export async function readIsContract(chain: Chain, addresses: readonly Hex[]): Promise<boolean[]> {
  return await readSizes(chain, addresses, (size) => size !== 0n && size !== delegationBytes)
}

async function readSizes(
  chain: Chain,
  addresses: readonly Hex[],
  isTrue: (codeBytes: bigint) => boolean,
): Promise<boolean[]> {
  const { witnessesMin } = chain.network
  const words = addresses.map((address) => address.slice(2).padStart(64, '0'))
  const data = `0x${codeSizes}${words.join('')}`
  const agreed = (told: readonly ProviderAnswer[]) => {
    const answers = told.flatMap(({ outcomes: [outcome] }) => wordsIn(outcome, addresses.length) ?? [])
    return addresses.map((_, i) => {
      const withCode = answers.filter((sizes) => isTrue(sizes[i] ?? 0n)).length
      const without = answers.length - withCode
      if (isMost(withCode, answers.length, witnessesMin)) return true
      if (isMost(without, answers.length, witnessesMin)) return false
      return answers.length > 0 && withCode * without === 0 ? withCode > 0 : null
    })
  }
  const told = await chain.rpc.askAll(
    [{ method: 'eth_call', params: [{ data, gas: readGas }, 'latest'] }],
    (some) => some.length >= enoughOf(chain.rpc.providers, witnessesMin) && !agreed(some).includes(null),
  )
  return agreed(told).map((hasCode) => {
    if (hasCode !== null) return hasCode
    throw new RpcUnavailableError('Too few nodes agree on whether the payer’s address has code.')
  })
}

function wordsIn(outcome: RpcOutcome | undefined, count: number): [bigint[]] | null {
  const answer = outcome && 'result' in outcome ? outcome.result : null
  if (!isHex(answer) || String(answer).length !== 2 + count * 64) return null
  return [
    Array.from({ length: count }, (_, i) => BigInt(`0x${String(answer).slice(2 + i * 64, 66 + i * 64)}`)),
  ]
}
