import { show, showHolder } from '../show.ts'
import type { EvmOption } from '../terms.ts'
import { Stop } from '../trouble.ts'
import { makeAuthorization, typedData } from './authorization.ts'
import { checkIsShown, offerFor, paymentHeader } from './offer.ts'
import { moveTo, type Provider, readChainId, signTyped } from './provider.ts'

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
  const balance = await readBalance(provider, option, account)
  checkIsMine()
  if (balance !== null && balance < BigInt(option.accepted.amount)) {
    showHolder(account, balance, option.decimals)
    throw new Stop('funds')
  }
  show('signing')
  const authorization = await makeAuthorization(option, account)
  const signature = await signTyped(provider, account, typedData(option, authorization))
  return paymentHeader(option, { signature, authorization })
}

/** Spares the buyer a useless signature. Null if the wallet cannot read it: then it is still asked to sign. */
async function readBalance(
  provider: Provider,
  { accepted }: EvmOption,
  account: string,
): Promise<bigint | null> {
  const data = `0x70a08231${account.slice(2).toLowerCase().padStart(64, '0')}`
  const call = { method: 'eth_call', params: [{ to: accepted.asset, data }, 'latest'] }
  try {
    return BigInt(String(await provider.request(call)))
  } catch {
    return null
  }
}
