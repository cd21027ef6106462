import { BlockList, isIP } from 'node:net'

/**
 * Networks and tokens as data. To add a token, add an entry to `assets`; to add an EVM network, add an entry here. Its
 * setting `<id>_RPC_URLS`, the SDK's table of known assets and the docs are derived from it: `npm run generate` writes
 * them.
 */
export const families = ['EVM', 'SOLANA'] as const
/** A family of chains on which people and stores have wallets of their own. */
export type Family = (typeof families)[number]
export type Mode = 'live' | 'test'

type Asset = {
  readonly symbol: string
  readonly address: string
  /** At least 6: a plain transfer is identified by an amount that is less than a cent above the price. */
  readonly decimals: number
}

type AnyNetwork<Token> = {
  /** Farthing's own name for the network, in settings and commands. The API calls it chainId. */
  readonly id: string
  readonly name: string
  /** CAIP-2 identifier. */
  readonly caip2: string
  readonly mode: Mode
  /** Runs on this machine: the URL of its node is no secret and is given to wallets. */
  readonly isLocal?: true
  /** A first guess at the time between blocks, with its source and date. It is measured later; no proof depends on it. */
  readonly blockTimeMs: number
  /** How many nodes must agree before a payment is declared dead. */
  readonly witnessesMin: number
  /** The smallest refund that a settler relays, in hundredths of the token: a smaller one is not worth its fee. */
  readonly refundCentsMin: number
  readonly assets: readonly Token[]
  /** The currency that fees are paid in. */
  readonly nativeCurrency: { readonly name: string; readonly symbol: string; readonly decimals: number }
  /** For buyers: what their wallet needs in order to add the network, and where they can look up a transaction. */
  readonly publicRpcUrl: string | null
  readonly explorerUrl: string | null
}

/**
 * A token's `domain` is its EIP-712 domain, which payers sign: on Base mainnet its name is "USD Coin", not the symbol.
 */
type EvmAsset = Asset & { readonly domain: { readonly name: string; readonly version: string } }

export type EvmNetwork = AnyNetwork<EvmAsset> & {
  readonly family: 'EVM'
  /**
   * How much younger than a block the newest block must be, by their own times, before we conclude that something missing
   * from the older one did not happen. It does not depend on how fast blocks come.
   */
  readonly negativeSeconds: number
  /** Above this gas price (in wei) nothing is sent, so that a spike cannot empty the settlers. */
  readonly maxFeePerGas: bigint
  /**
   * The OP Stack contract that says what a transaction costs on top of its gas: its data on the layer below, and the
   * operator's fee. Absent on networks that charge for gas alone.
   */
  readonly gasPriceOracle?: `0x${string}`
}

export type SolanaNetwork = AnyNetwork<Asset> & {
  readonly family: 'SOLANA'
  /** The Wallet Standard's own name for the cluster. */
  readonly walletStandardChain: `solana:${string}`
  /**
   * The most that payers can make our settlers pay for: compute units, and the price per unit in millionths of a
   * lamport.
   */
  readonly computeUnitsMax: number
  readonly computeUnitPriceMax: bigint
  readonly lookEveryMs: LookEveryMs
}

/** How often nodes are asked what became of payments: providers charge for each call, or allow so many per month. */
type LookEveryMs = {
  /** For a payment that was just sent, and less often the longer it is in no block. */
  readonly sent: number
  /** For what is not final, or while the providers contradict each other. */
  readonly unsettled: number
  /** While nothing happens. Shorter than the age of the head beyond which payments are refused. */
  readonly idle: number
}

/** A chain that is rows of our own database: what happens on it is chosen, for test stores (payments/sim/). */
export type SimulatedNetwork = AnyNetwork<Asset> & { readonly family: 'SIMULATED'; readonly mode: 'test' }

/** A network that nodes are asked about. */
export type NodeNetwork = EvmNetwork | SolanaNetwork
export type Network = NodeNetwork | SimulatedNetwork
/** With the simulated one, on which nobody brings a wallet. */
export type AnyFamily = Network['family']

/** Since the Denim upgrade (docs.base.org; Chainstack's changelog of 6 November 2026). Blocks took 2 seconds before. */
const baseBlockTimeMs = 200

const gasPriceOracle = '0x420000000000000000000000000000000000000f'
const ether = { name: 'Ether', symbol: 'ETH', decimals: 18 }
const sol = { name: 'Solana', symbol: 'SOL', decimals: 9 }

const evmNetworks: readonly EvmNetwork[] = [
  {
    id: 'BASE_MAINNET',
    name: 'Base',
    caip2: 'eip155:8453',
    family: 'EVM',
    mode: 'live',
    blockTimeMs: baseBlockTimeMs,
    negativeSeconds: 24,
    witnessesMin: 2,
    refundCentsMin: 1,
    maxFeePerGas: 5_000_000_000n,
    gasPriceOracle,
    assets: [
      {
        symbol: 'USDC',
        address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
        decimals: 6,
        domain: { name: 'USD Coin', version: '2' },
      },
    ],
    nativeCurrency: ether,
    publicRpcUrl: 'https://mainnet.base.org',
    explorerUrl: 'https://basescan.org',
  },
  {
    id: 'BASE_SEPOLIA',
    name: 'Base Sepolia',
    caip2: 'eip155:84532',
    family: 'EVM',
    mode: 'test',
    blockTimeMs: baseBlockTimeMs,
    negativeSeconds: 24,
    witnessesMin: 1,
    refundCentsMin: 1,
    maxFeePerGas: 5_000_000_000n,
    gasPriceOracle,
    assets: [
      {
        symbol: 'USDC',
        address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
        decimals: 6,
        domain: { name: 'USDC', version: '2' },
      },
    ],
    nativeCurrency: ether,
    publicRpcUrl: 'https://sepolia.base.org',
    explorerUrl: 'https://sepolia.basescan.org',
  },
  {
    id: 'LOCAL',
    isLocal: true,
    name: 'Local chain',
    caip2: 'eip155:31337',
    family: 'EVM',
    mode: 'test',
    blockTimeMs: 200,
    negativeSeconds: 3,
    witnessesMin: 1,
    refundCentsMin: 1,
    maxFeePerGas: 500_000_000_000n,
    assets: [
      {
        symbol: 'USDC',
        address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
        decimals: 6,
        domain: { name: 'USDC', version: '2' },
      },
    ],
    nativeCurrency: ether,
    publicRpcUrl: null,
    explorerUrl: null,
  },
]

/**
 * A transfer and a memo take about 10,000 units, and each guard that a wallet adds some thousand; wallets ask for more
 * than they need. With two signatures, a payer can make a settler spend 30,000 lamports (0.00003 SOL) per payment at most.
 */
const computeMax = { computeUnitsMax: 200_000, computeUnitPriceMax: 100_000n }

/**
 * The shortest time of a slot that was measured on the public clusters (mainnet, 27 October 2026: 214 ms on average, after
 * 400 ms for years). Only a first guess at how long a blockhash lives: the chain itself counts that, in blocks.
 */
const slotMs = 214

/** Most payments are confirmed within two seconds, and final within 15. */
const sparingly: LookEveryMs = { sent: 300, unsettled: 15_000, idle: 20_000 }
/** A node on this machine costs nothing. */
const freely: LookEveryMs = { sent: 300, unsettled: 1_000, idle: 5_000 }

const solanaNetworks: readonly SolanaNetwork[] = [
  {
    id: 'SOLANA_MAINNET',
    name: 'Solana',
    caip2: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
    family: 'SOLANA',
    walletStandardChain: 'solana:mainnet',
    mode: 'live',
    blockTimeMs: slotMs,
    witnessesMin: 2,
    refundCentsMin: 1,
    ...computeMax,
    lookEveryMs: sparingly,
    assets: [{ symbol: 'USDC', address: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', decimals: 6 }],
    nativeCurrency: sol,
    publicRpcUrl: 'https://api.mainnet-beta.solana.com',
    explorerUrl: 'https://solscan.io',
  },
  {
    id: 'SOLANA_DEVNET',
    name: 'Solana Devnet',
    caip2: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
    family: 'SOLANA',
    walletStandardChain: 'solana:devnet',
    mode: 'test',
    blockTimeMs: slotMs,
    witnessesMin: 1,
    refundCentsMin: 1,
    ...computeMax,
    lookEveryMs: sparingly,
    assets: [{ symbol: 'USDC', address: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU', decimals: 6 }],
    nativeCurrency: sol,
    publicRpcUrl: 'https://api.devnet.solana.com',
    explorerUrl: null,
  },
  {
    id: 'SOLANA_LOCAL',
    isLocal: true,
    name: 'Local Solana chain',
    caip2: 'solana:GuLKXAZVidPdHp6NsUHF4Qrzvs3PH9Rd',
    family: 'SOLANA',
    walletStandardChain: 'solana:localnet',
    mode: 'test',
    blockTimeMs: 400,
    witnessesMin: 1,
    refundCentsMin: 1,
    ...computeMax,
    lookEveryMs: freely,
    assets: [{ symbol: 'USDC', address: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU', decimals: 6 }],
    nativeCurrency: sol,
    publicRpcUrl: null,
    explorerUrl: null,
  },
]

/** It has no currency for fees and no node. The triggers that keep live stores from it name it too. */
const simulatedNetwork: SimulatedNetwork = {
  id: 'SIMULATED',
  isLocal: true,
  name: 'Simulated network',
  caip2: 'farthing:simulated',
  family: 'SIMULATED',
  mode: 'test',
  blockTimeMs: 200,
  witnessesMin: 1,
  refundCentsMin: 1,
  assets: [{ symbol: 'USDC', address: 'sim_usdc', decimals: 6 }],
  nativeCurrency: { name: 'Nothing', symbol: 'NONE', decimals: 18 },
  publicRpcUrl: null,
  explorerUrl: null,
}

export const nodeNetworks: readonly NodeNetwork[] = [...evmNetworks, ...solanaNetworks]

/** The simulated network is the last, so that every other comes before it in what a checkout offers. */
export const networks: readonly Network[] = [...nodeNetworks, simulatedNetwork]

const ids = new Map(networks.map(({ caip2, id }) => [caip2, id]))

/** Turns a CAIP-2 name into the name used in settings, logs and metrics; returns it unchanged if the network is unknown. */
export function idOfNetwork(caip2: string): string {
  return ids.get(caip2) ?? caip2
}

/** Loopback, private and link-local ranges, and the one that providers and overlay networks use between machines. */
const near = new BlockList()
for (const [address, bits] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['169.254.0.0', 16],
  ['100.64.0.0', 10],
] as const)
  near.addSubnet(address, bits, 'ipv4')
for (const [address, bits] of [
  ['::1', 128],
  ['fc00::', 7],
  ['fe80::', 10],
] as const)
  near.addSubnet(address, bits, 'ipv6')

/** The first of these networks that carries real money, if any does. */
export function findLive({
  networks: enabled,
}: {
  readonly networks: readonly string[]
}): Network | undefined {
  return networks.find(({ id, mode }) => mode === 'live' && enabled.includes(id))
}

/**
 * Why a network must not use this node, or null. Without TLS, any machine between us and the node can change its answers
 * about real money, so such a connection must not leave the operator's own network.
 */
export function findNodeMistake(
  { mode, name }: Pick<AnyNetwork<Asset>, 'mode' | 'name'>,
  url: string,
): string | null {
  const { protocol, hostname } = new URL(url)
  if (mode !== 'live' || protocol === 'https:' || isNear(hostname)) return null
  return `has ${protocol}//${hostname}, but ${name} carries real money: use https://, or a node on this machine or in a private network`
}

/** An address or name that only the operator's own network can resolve: one label, or a suffix reserved for it. */
function isNear(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
  const family = isIP(host)
  if (family !== 0) return near.check(host, family === 4 ? 'ipv4' : 'ipv6')
  return !host.includes('.') || /\.(localhost|internal|local)$/.test(host)
}
