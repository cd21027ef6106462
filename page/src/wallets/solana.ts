import { Stop, show } from '../show.ts'
import { path } from '../terms.ts'
import { checkIsShown, offerFor, paymentHeader } from './offer.ts'

/**
 * The part of the Wallet Standard that this page uses. A wallet registers when the page asks for wallets, and with
 * pages that are already listening when it loads.
 */
export type StandardWallet = {
  readonly name: string
  readonly icon: string
  readonly chains: readonly string[]
  readonly features: {
    readonly 'standard:connect'?: { connect(): Promise<{ accounts: readonly Account[] }> }
    readonly 'solana:signTransaction'?: {
      signTransaction(input: {
        readonly transaction: Uint8Array
        readonly account: Account
        readonly chain: string
      }): Promise<readonly { readonly signedTransaction: Uint8Array }[]>
    }
  }
}

type Account = { readonly address: string }

export function watchStandardWallets(found: (wallet: StandardWallet) => void): void {
  const register = (...wallets: readonly StandardWallet[]) => {
    for (const wallet of wallets) {
      const { 'standard:connect': connect, 'solana:signTransaction': sign } = wallet?.features ?? {}
      if (connect && sign) found(wallet)
    }
    return () => {}
  }
  const api = { register }
  addEventListener('wallet-standard:register-wallet', (event) => {
    const { detail } = event as CustomEvent<(asked: typeof api) => void>
    if (typeof detail === 'function') detail(api)
  })
  dispatchEvent(new CustomEvent('wallet-standard:app-ready', { detail: api }))
}

/** Connects the wallet, has the server build the transaction and has the wallet sign it. The server pays the fee. */
export async function signOnSolana(wallet: StandardWallet, checkIsMine: () => void): Promise<string> {
  const { 'standard:connect': connector, 'solana:signTransaction': signer } = wallet.features
  const [account] = (await connector?.connect())?.accounts ?? []
  checkIsMine()
  const option = offerFor('SOLANA')
  if (!account || !signer) throw new Stop('changed')
  checkIsShown(option)
  if (!wallet.chains.includes(option.chain)) throw new Stop('chain')
  const transaction = await prepare(option.accepted.network, account.address)
  checkIsMine()
  show('signing')
  const [signed] = await signer.signTransaction({ transaction, account, chain: option.chain })
  if (!signed) throw new Stop('failed')
  return paymentHeader(option, { transaction: btoa(String.fromCharCode(...signed.signedTransaction)) })
}

async function prepare(network: string, payer: string): Promise<Uint8Array> {
  const answer = await fetch(`${path}/prepare`, {
    method: 'POST',
    body: new URLSearchParams({ network, payer }),
  })
  const { transaction, error } = await answer.json()
  if (error === 'insufficient_funds') throw new Stop('funds')
  if (typeof transaction !== 'string') throw new Stop(answer.status < 500 ? 'changed' : 'failed')
  return Uint8Array.from(atob(transaction), (character) => character.charCodeAt(0))
}
