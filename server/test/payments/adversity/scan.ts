/**
 * The chain's content, read by this file alone: it shares no code with the product, so that a mistake in how the product
 * reads logs is not repeated here.
 */
export type ChainPlace = { readonly url: string; readonly token: string }

type Transfer = {
  readonly blockHash: string
  readonly blockNumber: number
  readonly transactionHash: string
  readonly logIndex: number
  readonly from: string
  readonly to: string
  readonly value: bigint
}

/** AuthorizationUsed and, as the very next log, a Transfer with the same payer, token and transaction. */
export type Pair = Transfer & { readonly nonce: string }

type Mined = {
  readonly hash: string
  readonly from: string
  readonly nonce: number
  readonly blockNumber: number
  readonly isSuccess: boolean
  readonly gasUsed: bigint
  readonly feeWei: bigint
}

export type Scan = {
  readonly head: number
  readonly blockTimes: ReadonlyMap<number, number>
  readonly transfers: readonly Transfer[]
  readonly pairs: readonly Pair[]
  readonly canceled: ReadonlySet<string>
  /** Transactions of the requested accounts, in chain order. */
  readonly mined: readonly Mined[]
}

type Answer = { id: number; result?: unknown; error?: { message: string } }

/** Sends many calls in one request and throws at the first error. */
export async function ask(url: string, calls: readonly [method: string, ...params: unknown[]][]) {
  const results: unknown[] = []
  for (let at = 0; at < calls.length; at += 200) {
    const body = calls
      .slice(at, at + 200)
      .map(([method, ...params], id) => ({ jsonrpc: '2.0', id, method, params }))
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const answers = ((await response.json()) as Answer[]).toSorted((a, b) => a.id - b.id)
    for (const { result, error } of answers) {
      if (error) throw new Error(error.message)
      results.push(result)
    }
  }
  return results
}

const usedTopic = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5'
const canceledTopic = '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81'
const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

type RawLog = {
  topics: string[]
  data: string
  blockHash: string
  blockNumber: string
  transactionHash: string
  logIndex: string
}
type RawBlock = { timestamp: string; transactions: { hash: string; from: string; nonce: string }[] }
type RawReceipt = {
  transactionHash: string
  status: string
  gasUsed: string
  effectiveGasPrice: string
}

/** Reads the whole chain up to its head, and the transactions of these accounts. */
export async function scanChain({ url, token }: ChainPlace, accounts: readonly string[]): Promise<Scan> {
  const [latest] = await ask(url, [['eth_blockNumber']])
  const head = number(latest as string)
  const [logs] = await ask(url, [
    ['eth_getLogs', { fromBlock: '0x0', toBlock: latest, address: token, topics: [] }],
  ])
  const numbers = Array.from({ length: head + 1 }, (_, i) => `0x${i.toString(16)}`)
  const blocks = (await ask(
    url,
    numbers.map((at) => ['eth_getBlockByNumber', at, true]),
  )) as RawBlock[]
  const ours = new Set(accounts.map((account) => account.toLowerCase()))
  const sent = blocks.flatMap(({ transactions }, blockNumber) =>
    transactions
      .filter(({ from }) => ours.has(from.toLowerCase()))
      .map((transaction) => ({ ...transaction, blockNumber })),
  )
  const receipts = (await ask(
    url,
    sent.map(({ hash }) => ['eth_getTransactionReceipt', hash]),
  )) as RawReceipt[]
  return {
    head,
    blockTimes: new Map(blocks.map(({ timestamp }, i) => [i, number(timestamp)])),
    ...readLogs(logs as RawLog[]),
    mined: sent.map(({ hash, from, nonce, blockNumber }, i) => {
      const receipt = receipts[i]
      if (!receipt) throw new Error(`${hash} has no receipt`)
      const gasUsed = BigInt(receipt.gasUsed)
      return {
        hash,
        from: from.toLowerCase(),
        nonce: number(nonce),
        blockNumber,
        isSuccess: receipt.status === '0x1',
        gasUsed,
        feeWei: gasUsed * BigInt(receipt.effectiveGasPrice),
      }
    }),
  }
}

function readLogs(raw: readonly RawLog[]): Pick<Scan, 'transfers' | 'pairs' | 'canceled'> {
  const logs = raw.toSorted(
    (a, b) => number(a.blockNumber) - number(b.blockNumber) || number(a.logIndex) - number(b.logIndex),
  )
  const transfers: Transfer[] = []
  const pairs: Pair[] = []
  const canceled = new Set<string>()
  for (const [i, log] of logs.entries()) {
    const [topic, first = '', second = ''] = log.topics
    if (topic === canceledTopic) canceled.add(`${address(first)} ${second}`)
    if (topic !== transferTopic) continue
    const transfer: Transfer = {
      blockHash: log.blockHash,
      blockNumber: number(log.blockNumber),
      transactionHash: log.transactionHash,
      logIndex: number(log.logIndex),
      from: address(first),
      to: address(second),
      value: BigInt(log.data),
    }
    transfers.push(transfer)
    const before = logs[i - 1]
    const isPair =
      before?.topics[0] === usedTopic &&
      before.topics[1] === first &&
      before.transactionHash === log.transactionHash &&
      number(before.logIndex) + 1 === transfer.logIndex
    if (isPair) pairs.push({ ...transfer, nonce: before.topics[2] ?? '' })
  }
  return { transfers, pairs, canceled }
}

function number(hex: string): number {
  return Number.parseInt(hex, 16)
}

function address(topic: string): string {
  return `0x${topic.slice(-40)}`
}
