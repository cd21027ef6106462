import { parseEvmAddress, showEvmAddress } from './evm.ts'
import { parseSolanaAddress } from './svm/address.ts'

/** Networks and tokens as data. To add a token, add one entry to `assets`; to add a network, one entry here. */
export type Family = 'EVM' | 'SOLANA'
export type Mode = 'live' | 'test'

type Asset = { readonly symbol: string; readonly address: string; readonly decimals: number }

type AnyNetwork<Token> = {
  readonly name: string
  /** The service's own name of the chain. */
  readonly chainId: string
  /** CAIP-2 identifier. */
  readonly caip2: string
  readonly mode: Mode
  readonly blockTimeMs: number
  /** How many nodes must agree before a payment is given up for dead. */
  readonly witnessesMin: number
  readonly assets: readonly Token[]
  /** For people: what their wallet needs to know the network, and where they can look at a transaction. */
  readonly publicRpcUrl: string | null
  readonly explorerUrl: string | null
}

/** A token's `domain` is its EIP-712 domain, which payers sign: on Base mainnet that is "USD Coin", not the symbol. */
type EvmAsset = Asset & { readonly domain: { readonly name: string; readonly version: string } }

export type EvmNetwork = AnyNetwork<EvmAsset> & {
  readonly family: 'EVM'
  /** Blocks on top of a block before "it did not happen" may be said of what it does not contain. */
  readonly negativeDepth: number
  /** Above this price of gas (wei) nothing is sent: a spike must not empty the settlers. */
  readonly maxFeePerGas: bigint
}

export type SolanaNetwork = AnyNetwork<Asset> & {
  readonly family: 'SOLANA'
  /** What payers may have our settlers pay for: compute units, and for each its price in millionths of a lamport. */
  readonly computeUnitsMax: number
  readonly computeUnitPriceMax: bigint
}

export type Network = EvmNetwork | SolanaNetwork

const evmNetworks: readonly EvmNetwork[] = [
  {
    name: 'Base',
    chainId: 'BASE_MAINNET',
    caip2: 'eip155:8453',
    family: 'EVM',
    mode: 'live',
    blockTimeMs: 2_000,
    negativeDepth: 12,
    witnessesMin: 2,
    maxFeePerGas: 5_000_000_000n,
    assets: [
      {
        symbol: 'USDC',
        address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
        decimals: 6,
        domain: { name: 'USD Coin', version: '2' },
      },
    ],
    publicRpcUrl: 'https://mainnet.base.org',
    explorerUrl: 'https://basescan.org',
  },
  {
    name: 'Base Sepolia',
    chainId: 'BASE_SEPOLIA',
    caip2: 'eip155:84532',
    family: 'EVM',
    mode: 'test',
    blockTimeMs: 2_000,
    negativeDepth: 12,
    witnessesMin: 1,
    maxFeePerGas: 5_000_000_000n,
    assets: [
      {
        symbol: 'USDC',
        address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
        decimals: 6,
        domain: { name: 'USDC', version: '2' },
      },
    ],
    publicRpcUrl: 'https://sepolia.base.org',
    explorerUrl: 'https://sepolia.basescan.org',
  },
  {
    name: 'Local chain',
    chainId: 'LOCAL',
    caip2: 'eip155:31337',
    family: 'EVM',
    mode: 'test',
    blockTimeMs: 1_000,
    negativeDepth: 3,
    witnessesMin: 1,
    maxFeePerGas: 500_000_000_000n,
    assets: [
      {
        symbol: 'USDC',
        address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
        decimals: 6,
        domain: { name: 'USDC', version: '2' },
      },
    ],
    publicRpcUrl: null,
    explorerUrl: null,
  },
]

/** What a payer may have a settler spend on one payment: two signatures and this, about 0.000016 SOL together. */
const computeMax = { computeUnitsMax: 60_000, computeUnitPriceMax: 100_000n }

const solanaNetworks: readonly SolanaNetwork[] = [
  {
    name: 'Solana',
    chainId: 'SOLANA_MAINNET',
    caip2: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
    family: 'SOLANA',
    mode: 'live',
    blockTimeMs: 400,
    witnessesMin: 2,
    ...computeMax,
    assets: [{ symbol: 'USDC', address: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', decimals: 6 }],
    publicRpcUrl: 'https://api.mainnet-beta.solana.com',
    explorerUrl: 'https://solscan.io',
  },
  {
    name: 'Solana Devnet',
    chainId: 'SOLANA_DEVNET',
    caip2: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
    family: 'SOLANA',
    mode: 'test',
    blockTimeMs: 400,
    witnessesMin: 1,
    ...computeMax,
    assets: [{ symbol: 'USDC', address: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU', decimals: 6 }],
    publicRpcUrl: 'https://api.devnet.solana.com',
    explorerUrl: null,
  },
  {
    name: 'Local Solana chain',
    chainId: 'SOLANA_LOCAL',
    caip2: 'solana:GuLKXAZVidPdHp6NsUHF4Qrzvs3PH9Rd',
    family: 'SOLANA',
    mode: 'test',
    blockTimeMs: 400,
    witnessesMin: 1,
    ...computeMax,
    assets: [{ symbol: 'USDC', address: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU', decimals: 6 }],
    publicRpcUrl: null,
    explorerUrl: null,
  },
]

export const networks: readonly Network[] = [...evmNetworks, ...solanaNetworks]

/** Addresses that are tokens, not wallets: money sent there is lost. Known ones of every network, enabled or not. */
const tokenAddresses = new Set([
  ...networks.flatMap(({ assets }) => assets.map(({ address }) => address)),
  // USDC and USDT on Ethereum, whose addresses people paste by mistake.
  '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
  '0xdAC17F958D2ee523a2206206994597C13D831ec7',
  // USDC and USDT on Solana, mainnet and devnet.
  'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
  'Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB',
])

/** The address in its family's canonical form, or the reason why nothing may be paid to it. */
export function parseWalletAddress(
  family: Family,
  text: string,
): { readonly address: string } | { readonly refusal: string } {
  const parsed = family === 'EVM' ? parseEvmAddress(text) : parseSolanaAddress(text)
  if ('refusal' in parsed) return parsed
  if (tokenAddresses.has(parsed.address))
    return { refusal: 'This is the address of a token, not of a wallet.' }
  return parsed
}

/**
 * The spelling by which stored addresses are compared, and the one that people are shown. Hex of either case is one
 * address; base58 has one spelling.
 */
export function toStored(caip2: string, address: string): string {
  return caip2.startsWith('eip155:') ? address.toLowerCase() : address
}

export function toShown(caip2: string, stored: string): string {
  return caip2.startsWith('eip155:') ? showEvmAddress(stored) : stored
}
