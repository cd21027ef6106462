import type { Wallet } from '../wallets/found.ts'
import type { Provider } from '../wallets/provider.ts'
import type { StandardWallet } from '../wallets/standard.ts'
import { Refused } from './post.ts'

/** Sends a request to a wallet and handles its answer. */
export type Asker = {
  readonly EVM: (provider: Provider) => Promise<string>
  readonly SOLANA: (wallet: StandardWallet) => Promise<string>
  /** `stays`: nothing else was loaded, so the screen can be used again. */
  readonly use: (answer: string, family: Wallet['family']) => Promise<'stays' | undefined>
}

/** The part of the screen that asks a wallet. The server wrote its texts and values. */
export const place = (): HTMLElement | null => document.querySelector('[data-sign]')

export const textOf = (name: string): string => place()?.dataset[name] ?? ''

/** The account that the screen names, if the wallet offers it. EVM addresses may differ in letter case. */
export async function connectEvm(provider: Provider): Promise<string> {
  const accounts = (await provider.request({ method: 'eth_requestAccounts' })) as readonly string[]
  const account = accounts.find((each) => isSame(each, textOf('from')))
  if (account === undefined) throw new Refused(textOf('account'))
  return account
}

export function isSame(a: unknown, b: string): boolean {
  return String(a).toLowerCase() === b.toLowerCase()
}

export async function connectSolana({ features }: StandardWallet) {
  const accounts = (await features['standard:connect']?.connect())?.accounts ?? []
  const account = accounts.find(({ address }) => address === textOf('from'))
  if (!account) throw new Refused(textOf('account'))
  return account
}
