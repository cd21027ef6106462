import type { Wallet } from '../wallets/found.ts'
import type { Provider } from '../wallets/provider.ts'
import type { StandardWallet } from '../wallets/standard.ts'
import { Refused } from './post.ts'

/** What a wallet is asked for, and what is done with its answer. */
export type Asker = {
  readonly EVM: (provider: Provider) => Promise<string>
  readonly SOLANA: (wallet: StandardWallet) => Promise<string>
  /** `stays`: the screen can be used again, because nothing else was loaded. */
  readonly use: (answer: string, family: Wallet['family']) => Promise<'stays' | undefined>
}

/** The part of the screen that asks a wallet; its texts and values are the server's. */
export const place = (): HTMLElement | null => document.querySelector('[data-sign]')

export const textOf = (name: string): string => place()?.dataset[name] ?? ''

/** The account that the screen names, if the wallet offers it. EVM addresses are the same in either case. */
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
