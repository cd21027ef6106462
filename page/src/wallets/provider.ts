import { Stop, troubleOf } from '../trouble.ts'

/** A wallet as EIP-1193 defines it. */
export type Provider = {
  request(call: { readonly method: string; readonly params?: unknown }): Promise<unknown>
}

/** A chain to switch a wallet to. `chain` describes it as EIP-3085 requires, for wallets that do not know it. */
export type WalletChain = { readonly chainId: number; readonly chain: { readonly chainId: string } }

export async function readChainId(provider: Provider): Promise<number> {
  return Number.parseInt(String(await provider.request({ method: 'eth_chainId' })), 16)
}

/** A wallet that cannot add a chain may already have it, and one that added it may not have switched to it. */
export async function moveTo(provider: Provider, { chainId, chain }: WalletChain): Promise<void> {
  const move = { method: 'wallet_switchEthereumChain', params: [{ chainId: chain.chainId }] }
  const add = { method: 'wallet_addEthereumChain', params: [chain] }
  for (const call of [move, add, move]) {
    try {
      await provider.request(call)
    } catch (error) {
      if (troubleOf(error) !== 'failed') throw error
    }
    if ((await readChainId(provider)) === chainId) return
  }
  throw new Stop('chain')
}

/** The wallet's signature of typed data. A contract wallet may return nothing, or something that is no signature. */
export async function signTyped(provider: Provider, account: string, typed: string): Promise<string> {
  const signature = await provider.request({ method: 'eth_signTypedData_v4', params: [account, typed] })
  if (typeof signature !== 'string' || !/^0x([0-9a-f]{2})+$/i.test(signature)) throw new Stop('smart')
  return signature
}
