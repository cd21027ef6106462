/**
 * Signs a refund with a wallet in this browser. The screen says how to sign without one; for every wallet that is found
 * there is a button. What the server hands out is signed only if it is what the screen shows.
 */
import { Stop, troubleOf } from '../trouble.ts'
import { watchWallets } from '../wallets/discover.ts'
import { wallets } from '../wallets/found.ts'
import { moveTo, type Provider, readChainId, signTyped, type WalletChain } from '../wallets/provider.ts'
import { fromBase64, type StandardWallet, toBase64 } from '../wallets/standard.ts'
import { post, Refused } from './post.ts'

/** The part of the screen that is about signing; its texts and values are the server's. */
const place = (): HTMLElement | null => document.querySelector('[data-sign]')

const textOf = (name: string): string => place()?.dataset[name] ?? ''

let isWatching = false

/** Again after the screen was replaced. */
export function offerWallets(): void {
  if (!place()) return
  if (isWatching) listWallets()
  else {
    isWatching = true
    watchWallets({ EVM: signOnEvm, SOLANA: signOnSolana }, listWallets)
  }
}

function listWallets(): void {
  const list = place()?.querySelector('[data-wallets]')
  if (!list) return
  const listed = wallets.filter(({ family }) => family === textOf('sign'))
  for (const button of list.querySelectorAll<HTMLElement>('button'))
    if (!listed.some(({ id }) => id === button.dataset.wallet)) button.remove()
  for (const { id, name } of listed) {
    if ([...list.children].some((button) => (button as HTMLElement).dataset.wallet === id)) continue
    const button = document.createElement('button')
    button.type = 'button'
    button.dataset.wallet = id
    // Text, never markup: the wallet chooses its own name.
    button.textContent = textOf('label').replace('{wallet}', () => name || textOf('unnamed'))
    list.append(button)
  }
  place()
    ?.querySelector('[data-no-wallet]')
    ?.toggleAttribute('hidden', listed.length > 0)
}

/** Has the wallet of this button sign, and presents the signature. */
export async function signRefund(button: HTMLElement): Promise<void> {
  const wallet = wallets.find(({ id }) => id === button.dataset.wallet)
  const asking = place()?.querySelector<HTMLElement>('[role="status"]')
  if (!wallet) return
  if (asking) asking.hidden = false
  try {
    const signed = await wallet.sign(() => {})
    const { to } = await post(
      textOf('present'),
      wallet.family === 'EVM' ? { signature: signed } : { transaction: signed },
    )
    location.assign(to)
  } catch (error) {
    if (asking) asking.hidden = true
    if (error instanceof Refused) throw error
    throw new Refused(textOf(troubleOf(error)) || textOf('failed'))
  }
}

type Prepared = {
  readonly typedData?: { readonly message: Readonly<Record<'from' | 'to' | 'value', unknown>> }
  readonly transaction?: string
}

async function signOnEvm(provider: Provider): Promise<string> {
  const accounts = (await provider.request({ method: 'eth_requestAccounts' })) as readonly string[]
  const from = textOf('from')
  const account = accounts.find((each) => isSame(each, from))
  if (account === undefined) throw new Refused(textOf('account'))
  const chain: WalletChain = JSON.parse(textOf('network'))
  if ((await readChainId(provider)) !== chain.chainId) await moveTo(provider, chain)
  const { typedData }: Prepared = await post(textOf('prepare'), {})
  const message = typedData?.message
  const isShown =
    isSame(message?.from, from) &&
    isSame(message?.to, textOf('recipient')) &&
    String(message?.value) === textOf('units')
  if (!isShown) throw new Stop('changed')
  return await signTyped(provider, account, JSON.stringify(typedData))
}

function isSame(a: unknown, b: string): boolean {
  return String(a).toLowerCase() === b.toLowerCase()
}

async function signOnSolana(wallet: StandardWallet): Promise<string> {
  const { 'standard:connect': connector, 'solana:signTransaction': signer } = wallet.features
  const accounts = (await connector?.connect())?.accounts ?? []
  const account = accounts.find(({ address }) => address === textOf('from'))
  if (!account || !signer) throw new Refused(textOf('account'))
  const { chain }: { readonly chain: string } = JSON.parse(textOf('network'))
  if (!wallet.chains.includes(chain)) throw new Stop('chain')
  const { transaction }: Prepared = await post(textOf('prepare'), {})
  if (typeof transaction !== 'string') throw new Stop('changed')
  const [signed] = await signer.signTransaction({ transaction: fromBase64(transaction), account, chain })
  if (!signed) throw new Stop('failed')
  return toBase64(signed.signedTransaction)
}
