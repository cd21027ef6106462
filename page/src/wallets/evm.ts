import { Stop, show, troubleOf } from '../show.ts'
import type { EvmOption } from '../terms.ts'
import { makeAuthorization, typedData } from './authorization.ts'
import { checkIsShown, offerFor, paymentHeader } from './offer.ts'

/** A wallet as EIP-1193 defines it. */
export type Provider = {
  request(call: { readonly method: string; readonly params?: unknown }): Promise<unknown>
}

/** Connects the wallet, switches it to the right chain and has it sign an authorization. */
export async function signOnEvm(provider: Provider, checkIsMine: () => void): Promise<string> {
  const [account] = (await provider.request({ method: 'eth_requestAccounts' })) as string[]
  checkIsMine()
  const chainId = await readChainId(provider)
  checkIsMine()
  const option = offerFor('EVM')
  if (!account) throw new Stop('changed')
  checkIsShown(option)
  if (option.chainId !== chainId) {
    show('switching')
    await moveTo(provider, option)
    checkIsMine()
  }
  if (await isTooPoor(provider, option, account)) throw new Stop('funds')
  checkIsMine()
  show('signing')
  const authorization = await makeAuthorization(option, account)
  const signature = await provider.request({
    method: 'eth_signTypedData_v4',
    params: [account, typedData(option, authorization)],
  })
  if (typeof signature !== 'string' || !/^0x([0-9a-f]{2})+$/i.test(signature)) throw new Stop('smart')
  return paymentHeader(option, { signature, authorization })
}

async function readChainId(provider: Provider): Promise<number> {
  return Number.parseInt(String(await provider.request({ method: 'eth_chainId' })), 16)
}

/** A wallet that cannot add a chain may already have it, and one that added it may not have switched to it. */
async function moveTo(provider: Provider, { chainId, chain }: EvmOption): Promise<void> {
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

/** Spares the buyer a useless signature. If the wallet cannot read the balance, it is still asked to sign. */
async function isTooPoor(provider: Provider, { accepted }: EvmOption, account: string): Promise<boolean> {
  const data = `0x70a08231${account.slice(2).toLowerCase().padStart(64, '0')}`
  const call = { method: 'eth_call', params: [{ to: accepted.asset, data }, 'latest'] }
  try {
    return BigInt(String(await provider.request(call))) < BigInt(accepted.amount)
  } catch {
    return false
  }
}
