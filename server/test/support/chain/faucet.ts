import type { Address } from 'viem'

/**
 * The tenth of a local chain's accounts, which tests send from and which may mint, pause and blacklist. The other nine
 * are free to be settlers and payers.
 */
export const faucet: Address = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'
