import type { Mined, Scan, Transfer } from './history.ts'

/** keccak256 of the events' signatures. */
const topics = {
  used: '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5',
  canceled: '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81',
  transfer: '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
}

const callsPerRequest = 200
/** The initial balance of each account of the local chain. */
const startWei = 10_000n * 10n ** 18n

type Call = readonly [method: string, ...params: unknown[]]

/** Queries a node, with many calls per request. Throws the first error. */
export async function ask<Result>(url: string, calls: readonly Call[]): Promise<Result[]> {
  const results: Result[] = []
  for (let from = 0; from < calls.length; from += callsPerRequest) {
    const body = calls
      .slice(from, from + callsPerRequest)
      .map(([method, ...params], id) => ({ jsonrpc: '2.0', id, method, params }))
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const answers = (await response.json()) as { id: number; result: Result; error?: { message: string } }[]
    for (const { result, error } of answers.toSorted((a, b) => a.id - b.id)) {
      if (error) throw new Error(error.message)
      results.push(result)
    }
  }
  return results
}

type RawLog = {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
  readonly blockHash: string
  readonly blockNumber: string
  readonly transactionHash: string
  readonly logIndex: string
}
type RawBlock = {
  readonly number: string
  readonly timestamp: string
  readonly transactions: readonly { readonly hash: string; readonly from: string; readonly nonce: string }[]
}

/** Reads the whole chain, the token's logs, and these accounts' transactions and balances. */
export async function scanChain(
  url: string,
  token: string,
  accounts: { readonly settlers: readonly string[]; readonly wallets: readonly string[] },
  noted: Pick<Scan, 'reachedAt' | 'replaced'>,
): Promise<Scan> {
  const [latest = '0x0'] = await ask<string>(url, [['eth_blockNumber']])
  const head = integer(latest)
  const [logs = []] = await ask<RawLog[]>(url, [
    ['eth_getLogs', { fromBlock: '0x0', toBlock: latest, address: token }],
  ])
  const blocks = await ask<RawBlock>(
    url,
    Array.from({ length: head + 1 }, (_, i) => ['eth_getBlockByNumber', `0x${i.toString(16)}`, true]),
  )
  const missing = blocks.findIndex((block) => !block)
  if (missing !== -1) throw new Error(`the node has no block ${missing} of ${head}`)
  const [safe, finalized] = await ask<RawBlock>(url, [
    ['eth_getBlockByNumber', 'safe', false],
    ['eth_getBlockByNumber', 'finalized', false],
  ])
  const mined = await readMined(url, blocks)
  const holders = [...accounts.wallets, ...accounts.settlers]
  const units = await ask<string>(
    url,
    holders.map((account) => [
      'eth_call',
      { to: token, data: `0x70a08231${account.slice(2).padStart(64, '0')}` },
      latest,
    ]),
  )
  const wei = await ask<string>(
    url,
    accounts.settlers.map((account) => ['eth_getBalance', account, latest]),
  )
  return {
    head,
    headTime: integer(blocks.at(-1)?.timestamp ?? '0x0'),
    safe: integer(safe?.number ?? '0x0'),
    finalized: integer(finalized?.number ?? '0x0'),
    ...noted,
    ...readLogs(logs, (number) => integer(blocks[number]?.timestamp ?? '0x0')),
    mined: mined.filter(({ from }) => accounts.settlers.includes(from)),
    balances: new Map(holders.map((account, i) => [account, BigInt(units[i] ?? 0)])),
    settlerFunds: new Map(
      accounts.settlers.map((account, i) => [account, { startWei, endWei: BigInt(wei[i] ?? 0) }]),
    ),
  }
}

/** The transactions in the newest blocks. */
export async function readNewest(url: string, depth: number): Promise<Mined[]> {
  const [latest = '0x0'] = await ask<string>(url, [['eth_blockNumber']])
  const numbers = Array.from({ length: depth }, (_, i) => integer(latest) - i).filter((number) => number >= 0)
  const blocks = await ask<RawBlock>(
    url,
    numbers.map((number) => ['eth_getBlockByNumber', `0x${number.toString(16)}`, true]),
  )
  return await readMined(url, blocks)
}

async function readMined(url: string, blocks: readonly RawBlock[]): Promise<Mined[]> {
  const sent = blocks.flatMap(({ transactions }) => transactions)
  const receipts = await ask<{ gasUsed: string; effectiveGasPrice: string }>(
    url,
    sent.map(({ hash }) => ['eth_getTransactionReceipt', hash]),
  )
  return sent.map(({ hash, from, nonce }, i) => ({
    hash,
    from: from.toLowerCase(),
    nonce: integer(nonce),
    feeWei: BigInt(receipts[i]?.gasUsed ?? 0) * BigInt(receipts[i]?.effectiveGasPrice ?? 0),
  }))
}

/** A Transfer is by authorization if the log directly before it is AuthorizationUsed of the same payer. */
export function readLogs(
  raw: readonly RawLog[],
  timeOf: (blockNumber: number) => number,
): Pick<Scan, 'transfers' | 'canceled'> {
  const logs = raw.toSorted(
    (a, b) => integer(a.blockNumber) - integer(b.blockNumber) || integer(a.logIndex) - integer(b.logIndex),
  )
  const canceled = new Set<string>()
  const transfers: Transfer[] = []
  for (const [i, log] of logs.entries()) {
    const [topic, first = '', second = ''] = log.topics
    if (topic === topics.canceled) canceled.add(`${account(first)} ${second}`)
    if (topic !== topics.transfer) continue
    const before = logs[i - 1]
    const isAuthorized =
      before?.topics[0] === topics.used &&
      before.topics[1] === first &&
      before.transactionHash === log.transactionHash &&
      integer(before.logIndex) + 1 === integer(log.logIndex)
    transfers.push({
      blockHash: log.blockHash,
      blockNumber: integer(log.blockNumber),
      blockTime: timeOf(integer(log.blockNumber)),
      transactionHash: log.transactionHash,
      logIndex: integer(log.logIndex),
      asset: log.address.toLowerCase(),
      from: account(first),
      to: account(second),
      value: BigInt(log.data),
      nonce: isAuthorized ? (before.topics[2] ?? null) : null,
    })
  }
  return { transfers, canceled }
}

function integer(hex: string): number {
  return Number.parseInt(hex, 16)
}

function account(topic: string): string {
  return `0x${topic.slice(-40)}`
}
