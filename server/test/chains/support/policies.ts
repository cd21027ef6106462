/**
 * What providers let a client do, as they document it (read in November 2026). Nobody was asked: these are for a proxy in
 * front of a local chain.
 */
export type Policy = {
  /** Calls per request, and how a larger one is refused. */
  readonly callsMax?: number
  readonly refusal?: 'one-error' | 'status-400' | 'status-200' | 'status-413'
  /** Methods that a batch must not contain. */
  readonly aloneOnly?: readonly string[]
  /** Blocks per question for logs, and the words of the refusal. */
  readonly blocksMax?: number
  readonly blocksRefusal?: ProviderError
  /** Units per second, how many are saved up at most, and what a call costs: 1, unless it is listed. */
  readonly perSecond?: number
  readonly burst?: number
  readonly costs?: Readonly<Record<string, number>>
  /** Calls of a single method per second, for those that are listed or for any; ten seconds' worth are saved up. */
  readonly methodPerSecond?: Readonly<Record<string, number>>
  /** How a client that calls too often is told: by status 429, or by an error for each call. */
  readonly limitForm?: 'status-429' | 'retry-after' | 'each'
  readonly limitError?: ProviderError
  /** Tags that are refused, with an error or with null. */
  readonly refusedTags?: readonly ('pending' | 'safe' | 'finalized')[]
  readonly tagRefusal?: 'error' | 'null'
  /** Fields that its headers lack. */
  readonly headerLacks?: readonly string[]
  /** Blocks whose state it has, the newest ones. */
  readonly stateKept?: number
  /** Methods that it does not know. */
  readonly refusedMethods?: readonly string[]
}

export type ProviderError = { readonly code: number; readonly message: string; readonly data?: unknown }

export const policies = {
  selfHosted: {},
  /** 500 compute units per second over a window of ten, by method; ranges of ten blocks. alchemy.com/docs, "Throughput", "eth_getLogs" */
  alchemyFree: {
    perSecond: 500,
    burst: 5_000,
    costs: {
      eth_chainId: 0,
      eth_blockNumber: 10,
      eth_getLogs: 60,
      eth_sendRawTransaction: 250,
      eth_call: 26,
    },
    limitForm: 'retry-after',
    limitError: { code: 429, message: 'Your app has exceeded its compute units per second capacity.' },
    blocksMax: 10,
    blocksRefusal: {
      code: -32600,
      message: 'Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range.',
    },
  },
  /** 10,000 compute units per second, no limit of blocks on Base. alchemy.com/docs, "Pay as you go" */
  alchemyPaid: { perSecond: 10_000, burst: 100_000, limitForm: 'retry-after' },
  /** 15 calls per second, ranges of five blocks. quicknode.com/docs, "Discover plan", "eth_getLogs" */
  quicknodeFree: {
    perSecond: 15,
    burst: 15,
    limitForm: 'status-429',
    limitError: { code: -32007, message: '15/second request limit reached - reduce calls per second' },
    blocksMax: 5,
    blocksRefusal: { code: -32614, message: 'eth_getLogs is limited to a 5 range' },
  },
  /** 500 credits per second; a call costs 80, logs 255. docs.metamask.io, "Credit cost" */
  infuraFree: {
    perSecond: 500,
    burst: 500,
    costs: { eth_chainId: 5, eth_getLogs: 255, eth_call: 80, eth_getBlockByNumber: 80, eth_blockNumber: 80 },
    limitForm: 'status-429',
    limitError: { code: -32005, message: 'Too Many Requests' },
  },
  /** 50 calls per second, ranges of 1,000 blocks. docs.cdp.coinbase.com, "Base node" */
  cdp: { perSecond: 50, burst: 250, limitForm: 'status-429', blocksMax: 1_000 },
  /** Three calls per request, about 100 calls per second, ranges of 10,000 blocks. drpc.org/docs, "Rate limiting" */
  drpcFree: {
    callsMax: 3,
    perSecond: 100,
    burst: 100,
    limitForm: 'status-429',
    refusal: 'status-400',
    blocksMax: 10_000,
    blocksRefusal: { code: 35, message: 'ranges over 10000 blocks are not supported on freetier' },
  },
  /** Ten calls per request, errors per call. ethereum-optimism/infra, proxyd: `max_batch_size`, `over rate limit` */
  publicProxyd: {
    callsMax: 10,
    refusal: 'status-200',
    perSecond: 50,
    burst: 100,
    limitForm: 'each',
    limitError: { code: -32016, message: 'over rate limit' },
    blocksMax: 2_000,
    blocksRefusal: { code: -32000, message: 'query exceeds max block range 2000' },
  },
} as const satisfies Readonly<Record<string, Policy>>

export const solanaPolicies = {
  selfHosted: {},
  /** Ten calls per second, one transaction per second, no batches for addresses. helius.dev/docs, "Rate limits" */
  heliusFree: {
    perSecond: 10,
    burst: 10,
    methodPerSecond: { sendTransaction: 1 },
    limitForm: 'status-429',
    limitError: { code: -32429, message: 'rate limited' },
    aloneOnly: ['getSignaturesForAddress'],
    refusal: 'status-400',
  },
  /** 100 calls in ten seconds, 40 of a single method. solana.com/docs, "Public RPC endpoints" */
  publicSolana: { perSecond: 10, burst: 100, methodPerSecond: { any: 4 }, limitForm: 'retry-after' },
} as const satisfies Readonly<Record<string, Policy>>
