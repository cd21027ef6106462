import { type Wallet, wallets } from './found.ts'
import type { Provider } from './provider.ts'
import { type StandardWallet, watchStandardWallets } from './standard.ts'

type Announcement = CustomEvent<{
  info?: { uuid?: unknown; name?: unknown; icon?: unknown }
  provider?: Provider
}>

/** Some wallets define `window.ethereum` late and announce nothing, so it is polled. */
const looks = 20
const lookMs = 500
const nameLengthMax = 40

/** The request to a wallet of each family. `checkIsMine` throws if that request was abandoned. */
export type Signers = {
  readonly EVM: (provider: Provider, checkIsMine: () => void) => Promise<string>
  readonly SOLANA: (wallet: StandardWallet, checkIsMine: () => void, isAgain: boolean) => Promise<string>
}

/**
 * Finds wallets that announce themselves (EIP-6963, the Wallet Standard), and `window.ethereum`. Calls back whenever
 * the list has changed. A strict content security policy delays some wallets, so it never stops listening.
 */
export function watchWallets(signers: Signers, changed: () => void): void {
  const add = (wallet: Wallet) => {
    if (wallets.some(({ id }) => id === wallet.id)) return
    wallets.push({
      ...wallet,
      name: wallet.name.slice(0, nameLengthMax),
      icon: wallet.icon.startsWith('data:image/') ? wallet.icon : '',
    })
    changed()
  }
  const addEvm = (id: string, name: string, icon: string, provider: Provider) =>
    add({ id, name, icon, family: 'EVM', sign: (checkIsMine) => signers.EVM(provider, checkIsMine) })

  addEventListener('eip6963:announceProvider', (event) => {
    const { info, provider } = (event as Announcement).detail ?? {}
    if (typeof provider?.request !== 'function') return
    // The unnamed `window.ethereum` is most likely this wallet, which has now announced its name.
    const unnamed = wallets.findIndex(({ id }) => id === '')
    if (unnamed >= 0) wallets.splice(unnamed, 1)
    addEvm(String(info?.uuid), String(info?.name ?? ''), String(info?.icon), provider)
  })
  dispatchEvent(new Event('eip6963:requestProvider'))

  watchStandardWallets((wallet) => {
    const [name, icon] = [String(wallet.name), String(wallet.icon)]
    const sign = (checkIsMine: () => void, isAgain = false) => signers.SOLANA(wallet, checkIsMine, isAgain)
    add({ id: `solana ${name}`, name, icon, family: 'SOLANA', sign })
  })

  const look = () => {
    const provider = (window as { ethereum?: Provider }).ethereum
    if (wallets.some(({ family }) => family === 'EVM') || typeof provider?.request !== 'function') return
    addEvm('', '', '', provider)
  }
  addEventListener('ethereum#initialized', look)
  let left = looks
  const timer = setInterval(() => {
    look()
    if (--left === 0) clearInterval(timer)
  }, lookMs)
}
