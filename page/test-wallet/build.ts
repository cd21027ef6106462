import { bundle } from '../build.ts'

/** The script of a wallet that signs with this key on this chain. Only for `dev`. */
export function buildTestWallet(key: string, chainId: number): string {
  return bundle('test-wallet/wallet.ts', { testKey: JSON.stringify(key), testChainId: `${chainId}` })
}
