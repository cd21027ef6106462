// Generated from server/src/networks.ts by npm run generate. Do not edit.

/** A token that is worth one US dollar. Payers use this table, because a server's word about itself proves nothing. */
export type Asset = {
  readonly symbol: string
  /** CAIP-2. */
  readonly network: string
  readonly networkName: string
  readonly address: string
  readonly decimals: number
  /** The token's EIP-712 domain, on EVM networks. */
  readonly domain?: { readonly name: string; readonly version: string }
}

export const knownAssets: readonly Asset[] = [
  {
    symbol: 'USDC',
    network: 'eip155:8453',
    networkName: 'Base',
    address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    decimals: 6,
    domain: { name: 'USD Coin', version: '2' },
  },
  {
    symbol: 'USDC',
    network: 'eip155:84532',
    networkName: 'Base Sepolia',
    address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    decimals: 6,
    domain: { name: 'USDC', version: '2' },
  },
  {
    symbol: 'USDC',
    network: 'eip155:31337',
    networkName: 'Local chain',
    address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    decimals: 6,
    domain: { name: 'USDC', version: '2' },
  },
  {
    symbol: 'USDC',
    network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
    networkName: 'Solana',
    address: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    decimals: 6,
  },
  {
    symbol: 'USDC',
    network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
    networkName: 'Solana Devnet',
    address: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
    decimals: 6,
  },
  {
    symbol: 'USDC',
    network: 'solana:GuLKXAZVidPdHp6NsUHF4Qrzvs3PH9Rd',
    networkName: 'Local Solana chain',
    address: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
    decimals: 6,
  },
]
