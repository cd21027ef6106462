import type { Hex } from '../hex.ts'
import {
  askAgreed,
  callsPerDayMax,
  type History,
  type PastTransfer,
  TooManyTransfersError,
} from '../history.ts'
import { type RpcCall, type RpcOutcome, RpcUnavailableError } from '../rpc.ts'
import { readFinality } from './advance.ts'
import { blockCall, blockIn, type Chain } from './chain.ts'
import { topics } from './eip3009.ts'
import { readGas } from './multicall.ts'
import { concernsMax } from './search.ts'

/** Most providers accept this many blocks per question for logs. A node that refuses is asked in parts. */
const blocksPerCall = 2_000
/** Together with the two directions, as many calls as nodes accept in one request. */
const rangesPerRequest = 5
/** Looks for a block by its time: more would mean that times do not rise. */
const looksMax = 100
/** Memory: a day has two ends, and days are audited in order. */
const boundariesMax = 1_000

const balanceOf = '0x70a08231'

type Timed = { readonly number: number; readonly time: number }

export function openEvmHistory(chain: Chain, transfersMax: number): History {
  const { rpc, network } = chain
  const boundaries = new Map<number, number>()
  const asked = { rpc, name: network.name, witnessesMin: network.witnessesMin }
  const assets = new Set(network.assets.map(({ address }) => address.toLowerCase()))

  const readTime = async (number: number): Promise<Timed> =>
    await askAgreed(asked, [blockCall(number)], ([outcome]) => {
      const block = blockIn(outcome)
      if (block?.number !== number) return null
      return { fact: { number, time: block.time.getTime() }, key: `${block.hash} ${block.time.getTime()}` }
    })

  return {
    providers: rpc.providers,
    async findSpan(from, before) {
      const { finalized } = await readFinality(chain)
      const head = await readTime(finalized)
      if (head.time < before.getTime()) return null
      const find = async (at: Date) => {
        const known = boundaries.get(at.getTime())
        if (known !== undefined) return known
        const found = await findFirst(readTime, head, at.getTime())
        if (boundaries.size >= boundariesMax) boundaries.clear()
        boundaries.set(at.getTime(), found)
        return found
      }
      const [first, next] = [await find(from), await find(before)]
      return { from, before, first, last: next - 1 }
    },
    async readTransfers(wallets, { first, last }) {
      const found: PastTransfer[] = []
      const calls = callsFor(chain, wallets, first, last)
      const callsBefore = rpc.countCalls()
      for (let i = 0; i < calls.length; i += rangesPerRequest) {
        const some = calls.slice(i, i + rangesPerRequest).flat()
        found.push(
          ...(await askAgreed(asked, some, (outcomes) => transfersIn(outcomes, { first, last, assets }))),
        )
        if (found.length > transfersMax) throw new TooManyTransfersError()
        if (rpc.countCalls() - callsBefore > callsPerDayMax)
          throw new RpcUnavailableError(
            `The nodes of ${network.name} accept too few blocks per question: a day would take more than ${callsPerDayMax} calls.`,
          )
      }
      return found
    },
    async readBalance(wallet, asset, span, when) {
      const block = when === 'after' ? span.last : span.first - 1
      if (block < 0) return 0n
      const call = { to: asset, data: `${balanceOf}${wallet.slice(2).padStart(64, '0')}`, gas: readGas }
      return await askAgreed(asked, [{ method: 'eth_call', params: [call, toHex(block)] }], ([outcome]) => {
        const said = outcome && 'result' in outcome ? outcome.result : null
        if (typeof said !== 'string' || !/^0x[0-9a-f]{64}$/i.test(said)) return null
        return { fact: BigInt(said), key: `${BigInt(said)}` }
      }).catch((error: unknown) => {
        // Nodes without an archive have forgotten what an account held on a day in the past.
        if (error instanceof RpcUnavailableError) return null
        throw error
      })
    },
    async readTransaction(transaction) {
      // Nodes refuse to look up what is no hash, and that must not stop an audit.
      if (!/^0x[0-9a-f]{64}$/.test(transaction)) return []
      const call = { method: 'eth_getTransactionReceipt', params: [transaction] }
      return await askAgreed(asked, [call], ([outcome]) => {
        if (!outcome || 'error' in outcome) return null
        const { logs = [] } = (outcome.result ?? {}) as { readonly logs?: unknown }
        return transfersIn([{ result: logs }], { first: 0, last: Number.MAX_SAFE_INTEGER, assets })
      })
    },
    countCalls: () => rpc.countCalls(),
  }
}

/**
 * The first block whose time is not before `time`. The guess follows the chain’s pace, and every second look halves
 * what is left, because a chain’s pace changes.
 */
async function findFirst(
  read: (number: number) => Promise<Timed>,
  head: Timed,
  time: number,
): Promise<number> {
  let below = await read(0)
  let above = head
  if (below.time >= time) return 0
  for (let look = 0; look < looksMax; look++) {
    const blocks = above.number - below.number
    if (blocks <= 1) return above.number
    const share = (time - below.time) / Math.max(1, above.time - below.time)
    const guess = look % 2 === 0 ? Math.floor(blocks * share) : Math.floor(blocks / 2)
    const found = await read(below.number + Math.min(blocks - 1, Math.max(1, guess)))
    if (found.time < time) below = found
    else above = found
  }
  throw new RpcUnavailableError('The times of the blocks do not rise.')
}

/** For each range of blocks, what arrived and what left. */
function callsFor({ network }: Chain, wallets: readonly string[], first: number, last: number): RpcCall[][] {
  if (wallets.length > concernsMax) throw new RangeError('too many wallets for one question')
  const words = wallets.map((wallet) => `0x${wallet.slice(2).padStart(64, '0')}`)
  const calls: RpcCall[][] = []
  for (let from = first; from <= last; from += blocksPerCall) {
    const range = {
      address: network.assets.map(({ address }) => address),
      fromBlock: toHex(from),
      toBlock: toHex(Math.min(last, from + blocksPerCall - 1)),
    }
    calls.push(
      [
        [topics.transfer, null, words],
        [topics.transfer, words],
      ].map((filter) => ({ method: 'eth_getLogs', params: [{ ...range, topics: filter }] })),
    )
  }
  return calls
}

type RawLog = {
  readonly address?: unknown
  readonly topics?: unknown
  readonly data?: unknown
  readonly blockNumber?: unknown
  readonly transactionHash?: unknown
  readonly logIndex?: unknown
}

/** The transfers in the answers, each once. Null if an answer is not what was asked for. */
function transfersIn(
  outcomes: readonly RpcOutcome[],
  within: { readonly first: number; readonly last: number; readonly assets: ReadonlySet<string> },
): { readonly fact: PastTransfer[]; readonly key: string } | null {
  const found = new Map<string, PastTransfer & { readonly logIndex: number }>()
  for (const outcome of outcomes) {
    if ('error' in outcome || !Array.isArray(outcome.result)) return null
    for (const raw of outcome.result as (RawLog | null)[]) {
      const log = readLog(raw)
      if (!log || !(log.block >= within.first && log.block <= within.last)) return null
      if (log.topic === topics.transfer && within.assets.has(log.asset) && log.amount > 0n)
        found.set(`${log.block} ${log.logIndex}`, log)
    }
  }
  const sorted = [...found.values()].toSorted((a, b) => a.block - b.block || a.logIndex - b.logIndex)
  const key = sorted.map((log) => [
    log.block,
    log.logIndex,
    log.transaction,
    log.asset,
    log.from,
    log.to,
    log.amount,
  ])
  return { fact: sorted, key: key.join(';') }
}

/** Null if it is no log. One of another form than a transfer’s moves nothing. */
function readLog(
  raw: RawLog | null,
): (PastTransfer & { readonly logIndex: number; readonly topic: string }) | null {
  const block = Number.parseInt(String(raw?.blockNumber), 16)
  const logIndex = Number.parseInt(String(raw?.logIndex), 16)
  if (!raw || !Number.isSafeInteger(block) || !Number.isSafeInteger(logIndex) || !Array.isArray(raw.topics))
    return null
  const [topic, from, to] = raw.topics.map((word) => String(word).toLowerCase())
  const data = String(raw.data)
  const isTransfer = raw.topics.length === 3 && /^0x[0-9a-f]{64}$/i.test(data)
  return {
    ...{ block, logIndex, topic: topic ?? '' },
    asset: String(raw.address).toLowerCase(),
    from: `0x${String(from).slice(26)}`,
    to: `0x${String(to).slice(26)}`,
    amount: isTransfer ? BigInt(data) : 0n,
    transaction: String(raw.transactionHash).toLowerCase(),
  }
}

function toHex(number: number): Hex {
  return `0x${number.toString(16)}`
}
