import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  decodeFunctionData,
  decodeFunctionResult,
  encodeFunctionResult,
  type Hex,
  keccak256,
  pad,
  parseAbi,
  toHex,
  toRlp,
  trim,
} from 'viem'

/** Asks an honest node. Rejects if the node answers with an error. */
type Ask = <Result>(method: string, ...params: readonly unknown[]) => Promise<Result>

type Call = { readonly method: string; readonly params: readonly unknown[] }

/** Answers one call falsely. The liar can ask an honest node. */
export type Lie = (call: Call, ask: Ask) => Promise<unknown>

type Header = { readonly number: Hex; readonly hash: Hex; readonly parentHash: Hex } & Readonly<
  Record<string, unknown>
>
type Log = Readonly<Record<'address' | 'data' | 'blockHash' | 'transactionHash' | 'logIndex', Hex>> & {
  readonly topics: readonly Hex[]
}

/** Answers as an honest node does. */
const tellTruth: Lie = ({ method, params }, ask) => ask(method, ...params)

type Numbered = Call & { readonly jsonrpc: '2.0'; readonly id: number }
type Reply = {
  readonly jsonrpc: '2.0'
  readonly id: number
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string }
}

/** Answers the calls of a request falsely, and counts the false answers; `forward` leads to an honest node. */
export async function answerAs(
  lie: Lie,
  calls: readonly Numbered[],
  forward: (calls: readonly Numbered[]) => Promise<readonly Reply[]>,
): Promise<{ replies: Reply[]; falsehoods: number }> {
  const ask = async <Result>(method: string, ...params: readonly unknown[]) => {
    const [reply] = await forward([{ jsonrpc: '2.0', id: 1, method, params }])
    if (reply?.error) throw new RefusedError(reply.error)
    return reply?.result as Result
  }
  const replies = await Promise.all(
    calls.map(async (call): Promise<Reply> => {
      const { id } = call
      try {
        return { jsonrpc: '2.0', id, result: await lie(call, ask) }
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error
        return { jsonrpc: '2.0', id, error: error.answer }
      }
    }),
  )
  // A liar sends transactions honestly, because a transaction must not be sent twice.
  const truth = await forward(calls.filter(({ method }) => method !== 'eth_sendRawTransaction'))
  const falsehoods = replies.filter(({ id, ...told }) => {
    const honest = truth.find((reply) => reply.id === id)
    return honest && !isDeepStrictEqual({ id, ...told }, honest)
  }).length
  return { replies, falsehoods }
}

/** The honest node refused the call. */
class RefusedError extends Error {
  readonly answer: NonNullable<Reply['error']>
  constructor(answer: NonNullable<Reply['error']>) {
    super(answer.message)
    this.answer = answer
  }
}

/** The ways in which a provider of an EVM chain lies. Each call begins a new lie, which stays consistent with itself. */
export const lies = {
  'another history below finalized': () =>
    tellOtherHistory(async (ask) => (await numberAt(ask, 'finalized')) - 3),
  'another history above finalized': () =>
    tellOtherHistory(async (ask) => (await numberAt(ask, 'finalized')) + 1),
  'another history of hashes alone': tellOtherHashes,
  'a forged credit': () => forgeCredits(false),
  'a forged credit and a bloom filter that has it': () => forgeCredits(true),
  'all logs omitted': () => changeLogs(() => []),
  'the first payment of several omitted': () => changeLogs((logs) => logs.slice(logsPerPayment)),
  'the last payment of several omitted': () => changeLogs((logs) => logs.slice(0, -logsPerPayment)),
  'payments in another order': () => changeLogs(swapPlaces),
  'transactions of another sender': () => changeSent((sent) => ({ ...sent, from: stranger })),
  'transactions of another account nonce': () => changeSent((sent) => ({ ...sent, nonce: '0xffff' })),
  'transactions of another content': () => changeSent((sent) => ({ ...sent, input: `${sent.input}00` })),
  'transactions that nobody knows': () => (call, ask) =>
    isOfTransaction(call.method) ? Promise.resolve(null) : tellTruth(call, ask),
  'receipts of failures': () => changeReceipts((receipt) => ({ ...receipt, status: '0x0', logs: [] })),
  'receipts of other costs': () =>
    changeReceipts((receipt) => ({ ...receipt, gasUsed: '0xffffff', effectiveGasPrice: '0xffffffff' })),
  'receipts of another block': () =>
    changeReceipts((receipt) => ({ ...receipt, blockNumber: '0x1', blockHash: pad('0x01') })),
  'a few blocks behind': lagBehind,
  'finality too high': () => moveTags(() => 'latest'),
  'finality too low': () => moveTags(() => '0x1'),
  'account nonces too high': () => changeNonces((nonce) => nonce + 3),
  'account nonces too low': () => changeNonces((nonce) => Math.max(0, nonce - 1)),
  'balances too low': () => changeBalances(() => 0n),
  'balances too high': () => changeBalances((units) => units + 10n ** 15n),
  'balances of one payment': () => changeBalances((units) => (units < onePayment ? units : onePayment)),
  'nonces used': () => changeWords(authorizationState, () => 1n),
  'code at every address': tellOfCode,
  nonsense: () => (call, ask) => (call.method === 'eth_chainId' ? tellTruth(call, ask) : Promise.resolve({})),
  'a head that never moves': stopHead,
  'a head far ahead': runAhead,
} as const satisfies Record<string, () => Lie>

/** An account that nothing here uses. */
const stranger: Hex = '0x00000000000000000000000000000000000057a9'
const lagBlocks = 2
/** A payment by authorization has AuthorizationUsed and Transfer. */
const logsPerPayment = 2
const aheadBlocks = 40
/** The price of the most expensive payment in runs with these lies. */
const onePayment = 2_500_000n
const authorizationUsed = keccak256(toHex('AuthorizationUsed(address,bytes32)'))
const authorizationState: Hex = '0xe94a0102'
const balanceOf: Hex = '0x70a08231'

async function numberAt(ask: Ask, tag: string): Promise<number> {
  const block = await ask<Header | null>('eth_getBlockByNumber', tag, false)
  return Number.parseInt(block?.number ?? '0x0', 16)
}

/** The fields of a header in the order in which they are hashed; those that an older chain lacks are left out. */
const headerFields = [
  ...['parentHash', 'sha3Uncles', 'miner', 'stateRoot', 'transactionsRoot', 'receiptsRoot', 'logsBloom'],
  ...['difficulty', 'number', 'gasLimit', 'gasUsed', 'timestamp', 'extraData', 'mixHash', 'nonce'],
  ...[
    'baseFeePerGas',
    'withdrawalsRoot',
    'blobGasUsed',
    'excessBlobGas',
    'parentBeaconBlockRoot',
    'requestsHash',
  ],
]
const quantities = /^(difficulty|number|gasLimit|gasUsed|timestamp|baseFeePerGas|blobGasUsed|excessBlobGas)$/

/** A header with its true hash. */
function seal(header: Header): Header {
  const fields = headerFields.flatMap((name): Hex[] => {
    const value = header[name] as Hex | undefined
    if (!value) return []
    if (!quantities.test(name)) return [value]
    return [BigInt(value) === 0n ? '0x' : trim(toHex(BigInt(value), { size: 32 }))]
  })
  return { ...header, hash: keccak256(toRlp(fields)) }
}

/** Other blocks from a height on, each with a true hash and the hash of the one before it as its parent. */
function tellOtherHistory(from: (ask: Ask) => Promise<number>): Lie {
  const others = new Map<string, Promise<Header>>()
  const realHashes = new Map<string, Hex>()
  let first: Promise<number> | null = null
  const replace = async (ask: Ask, real: Header): Promise<Header> => {
    const number = Number.parseInt(real.number, 16)
    first ??= from(ask)
    if (number < Math.max(1, await first)) return real
    const known = others.get(real.hash)
    if (known) return await known
    const made = (async () => {
      const parent = await ask<Header>('eth_getBlockByNumber', toHex(number - 1), false)
      const { hash: parentHash } = await replace(ask, parent)
      const other = seal({ ...real, parentHash, extraData: '0x6f74686572' })
      realHashes.set(other.hash, real.hash)
      return other
    })()
    others.set(real.hash, made)
    return await made
  }
  return async (call, ask) => {
    const { method, params } = call
    if (method === 'eth_getBlockByNumber') {
      const real = await ask<Header | null>(method, ...params)
      return real && (await replace(ask, real))
    }
    const [filter] = params as { blockHash?: Hex }[]
    const blockHash = realHashes.get(filter?.blockHash ?? '')
    if (method !== 'eth_getLogs' || !blockHash) return await tellTruth(call, ask)
    const logs = await ask<Log[]>(method, { ...filter, blockHash })
    return logs.map((log) => ({ ...log, blockHash: filter?.blockHash }))
  }
}

/** Hashes that belong to nothing, all the way back. */
function tellOtherHashes(): Lie {
  const other = (hash: Hex): Hex => `0xdead${hash.slice(6)}`
  return async (call, ask) => {
    const block = (await tellTruth(call, ask)) as Header | null
    if (call.method !== 'eth_getBlockByNumber' || !block) return block
    return { ...block, hash: other(block.hash), parentHash: other(block.parentHash) }
  }
}

/**
 * Invents payments: returns the logs that would prove each authorization that is asked about, or else those of a new
 * authorization of the last payer.
 */
function forgeCredits(withBloom: boolean): Lie {
  const asked = new Map<Hex, Hex>()
  const forged = new Map<Hex, Log[]>()
  let model: readonly Log[] = []
  return async (call, ask) => {
    for (const { callData } of callsIn(call))
      if (callData.startsWith(authorizationState))
        asked.set(`0x${callData.slice(74, 138)}`, `0x${callData.slice(10, 74)}`)
    const answer = await tellTruth(call, ask)
    if (call.method === 'eth_getBlockByNumber' && withBloom && answer)
      return { ...(answer as Header), logsBloom: `0x${'ff'.repeat(256)}` }
    const [filter] = call.params as { blockHash?: Hex; toBlock?: Hex }[]
    if (call.method !== 'eth_getLogs' || !filter) return answer
    const logs = answer as Log[]
    if (model.length === 0) model = await findPayment(ask, filter)
    const [used, transfer] = model
    if (!used || !transfer) return answer
    // A search finds them in the newest block that it asks about.
    const newest = filter.blockHash
      ? null
      : await ask<Header | null>('eth_getBlockByNumber', filter.toBlock, false)
    const blockHash = filter.blockHash ?? newest?.hash
    if (!blockHash) return answer
    if (!forged.has(blockHash)) {
      const nonces = asked.size > 0 ? [...asked] : [[toHex(randomBytes(32)), used.topics[1] ?? '0x'] as const]
      asked.clear()
      const known = new Set(logs.map(({ topics: [, , nonce] }) => nonce))
      forged.set(
        blockHash,
        nonces
          .filter(([nonce]) => !known.has(nonce))
          .flatMap(([nonce, payer], i) => {
            const at = { blockHash, transactionHash: toHex(randomBytes(32)) }
            const place = 500 + logsPerPayment * i
            return [
              { ...used, ...at, topics: [used.topics[0] ?? '0x', payer, nonce], logIndex: toHex(place) },
              {
                ...transfer,
                ...at,
                topics: [transfer.topics[0] ?? '0x', payer, transfer.topics[2] ?? '0x'],
                logIndex: toHex(place + 1),
              },
            ]
          }),
      )
    }
    const made = forged.get(blockHash) ?? []
    return [...logs, ...(newest ? made.map((log) => ({ ...log, blockNumber: newest.number })) : made)]
  }
}

/** The logs of the newest payment by authorization. */
async function findPayment(ask: Ask, filter: object): Promise<readonly Log[]> {
  const { address } = filter as { address?: unknown }
  const logs = await ask<Log[]>('eth_getLogs', { address, fromBlock: '0x0', toBlock: 'latest' })
  const at = logs.findLastIndex(({ topics: [topic] }) => topic === authorizationUsed)
  return at === -1 ? [] : logs.slice(at, at + logsPerPayment)
}

function changeLogs(change: (logs: readonly Log[]) => readonly Log[]): Lie {
  return async (call, ask) => {
    const answer = await tellTruth(call, ask)
    return call.method === 'eth_getLogs' ? change(answer as Log[]) : answer
  }
}

/** Each log gets the place of the next one, and the last gets the first's, so equal payments change places. */
function swapPlaces(logs: readonly Log[]): readonly Log[] {
  return logs.map((log, i) => ({ ...log, logIndex: logs[(i + 1) % logs.length]?.logIndex ?? log.logIndex }))
}

type Sent = Readonly<Record<'from' | 'nonce' | 'input', Hex>>
type Receipt = Readonly<
  Record<'status' | 'gasUsed' | 'effectiveGasPrice' | 'blockNumber' | 'blockHash', Hex>
> & {
  readonly logs: readonly Log[]
}

function isOfTransaction(method: string): boolean {
  return method === 'eth_getTransactionByHash' || method === 'eth_getTransactionReceipt'
}

function changeSent(change: (sent: Sent) => Sent): Lie {
  return async (call, ask) => {
    const sent = (await tellTruth(call, ask)) as Sent | null
    return call.method === 'eth_getTransactionByHash' && sent ? change(sent) : sent
  }
}

function changeReceipts(change: (receipt: Receipt) => Receipt): Lie {
  return async (call, ask) => {
    const receipt = (await tellTruth(call, ask)) as Receipt | null
    return call.method === 'eth_getTransactionReceipt' && receipt ? change(receipt) : receipt
  }
}

/** Honest, but always some blocks late. Newer blocks and their contents do not exist, and state is as it was then. */
function lagBehind(): Lie {
  return async (call, ask) => {
    const head = Math.max(0, (await numberAt(ask, 'latest')) - lagBlocks)
    const { method, params } = call
    const isNew = (at: unknown) =>
      /^0x[0-9a-f]{1,12}$/.test(String(at)) && Number.parseInt(String(at), 16) > head
    if (method === 'eth_blockNumber') return toHex(head)
    if (method === 'eth_getBlockByNumber' && isNew(params[0])) return null
    const then = params.map((param) => (param === 'latest' || param === 'pending' ? toHex(head) : param))
    const answer = await ask<unknown>(method, ...then)
    if (Array.isArray(answer)) {
      if (!answer.some(({ blockNumber }) => isNew(blockNumber))) return answer
      throw new RefusedError({ code: -32_000, message: 'unknown block' })
    }
    return isNew((answer as { blockNumber?: Hex } | null)?.blockNumber) ? null : answer
  }
}

function moveTags(move: (tag: string) => string): Lie {
  return ({ method, params: [tag, ...rest] }, ask) =>
    tag === 'safe' || tag === 'finalized' ? ask(method, move(tag), ...rest) : ask(method, tag, ...rest)
}

function changeNonces(change: (nonce: number) => number): Lie {
  return async (call, ask) => {
    const answer = await tellTruth(call, ask)
    if (call.method !== 'eth_getTransactionCount') return answer
    return toHex(change(Number.parseInt(answer as Hex, 16)))
  }
}

/** Balances of the token, and of the settlers. */
function changeBalances(change: (units: bigint) => bigint): Lie {
  const lie = changeWords(balanceOf, change)
  return async (call, ask) =>
    call.method === 'eth_getBalance'
      ? toHex(change(BigInt((await tellTruth(call, ask)) as Hex)))
      : await lie(call, ask)
}

/** Changes what calls of one function within a Multicall3 call return. */
function changeWords(selector: Hex, change: (word: bigint) => bigint): Lie {
  return async (call, ask) => {
    const answer = await tellTruth(call, ask)
    const calls = callsIn(call)
    if (!calls.some(({ callData }) => callData.startsWith(selector))) return answer
    const result = decodeFunctionResult({ abi: aggregate3, data: answer as Hex }).map((one, i) =>
      calls[i]?.callData.startsWith(selector)
        ? { ...one, returnData: pad(toHex(change(BigInt(one.returnData)))) }
        : one,
    )
    return encodeFunctionResult({ abi: aggregate3, functionName: 'aggregate3', result })
  }
}

function callsIn({ method, params: [request] }: Call): readonly { readonly callData: Hex }[] {
  const { data = '0x' } = (request ?? {}) as { data?: Hex }
  if (method !== 'eth_call' || !data.startsWith(aggregateSelector)) return []
  const { args } = decodeFunctionData({ abi: aggregate3, data })
  return args[0]
}

const aggregateSelector = '0x82ad56cb'
const aggregate3 = parseAbi([
  'struct Call { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call[] calls) returns (Result[])',
])

/** Every address is a contract. The server reads code sizes with code that it calls without deploying it. */
function tellOfCode(): Lie {
  return async (call, ask) => {
    const answer = await tellTruth(call, ask)
    const [request] = call.params as { to?: Hex }[]
    if (call.method !== 'eth_call' || request?.to) return answer
    return (answer as Hex).replaceAll('0'.repeat(64), '1'.padStart(64, '0'))
  }
}

/** The chain ends at the block that was the newest when the lie began. */
function stopHead(): Lie {
  let end: Promise<number> | null = null
  return async (call, ask) => {
    end ??= numberAt(ask, 'latest')
    const last = await end
    const { method, params } = call
    if (method === 'eth_blockNumber') return toHex(last)
    if (method !== 'eth_getBlockByNumber') return await tellTruth(call, ask)
    const [at] = params
    if (at === 'latest') return await ask(method, toHex(last), false)
    return Number.parseInt(String(at), 16) > last ? null : await tellTruth(call, ask)
  }
}

/** The chain is many blocks longer than it is: invented ones follow the block that was the newest when the lie began. */
function runAhead(): Lie {
  let start: Promise<Header> | null = null
  const invented: Header[] = []
  return async (call, ask) => {
    const { method, params } = call
    start ??= ask<Header>('eth_getBlockByNumber', 'latest', false)
    const base = await start
    const first = Number.parseInt(base.number, 16) + 1
    const [at] = params
    if (
      method === 'eth_getLogs' &&
      invented.some(({ hash }) => hash === (at as { blockHash?: Hex }).blockHash)
    )
      return []
    const numberIn = (block: unknown) => Number.parseInt(String(block), 16)
    const { fromBlock, toBlock } = (at ?? {}) as { fromBlock?: Hex; toBlock?: Hex }
    // The invented blocks contain nothing that a search asks for.
    if (method === 'eth_getLogs' && numberIn(toBlock) >= first)
      return numberIn(fromBlock) >= first ? [] : await ask(method, { ...(at as object), toBlock: 'latest' })
    if (method !== 'eth_blockNumber' && method !== 'eth_getBlockByNumber') return await tellTruth(call, ask)
    const head = (await numberAt(ask, 'latest')) + aheadBlocks
    while (first + invented.length <= head) {
      const parent = invented.at(-1) ?? base
      const number = toHex(first + invented.length)
      const timestamp = toHex(Number.parseInt(String(parent.timestamp), 16) + 2)
      invented.push(seal({ ...base, number, timestamp, parentHash: parent.hash, extraData: '0x6168656164' }))
    }
    if (method === 'eth_blockNumber') return toHex(head)
    const wanted = at === 'latest' ? head : numberIn(at)
    return wanted >= first ? (invented[wanted - first] ?? null) : await tellTruth(call, ask)
  }
}
