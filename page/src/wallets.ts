/** Wallets in this browser: those that announce themselves (EIP-6963), at any time, and `window.ethereum`. */
export type Provider = {
  request(call: { readonly method: string; readonly params?: unknown }): Promise<unknown>
}

export type Wallet = {
  readonly id: string
  /** Empty where the wallet did not say. */
  readonly name: string
  readonly icon: string
  readonly provider: Provider
}

type Announcement = CustomEvent<{
  info?: { uuid?: unknown; name?: unknown; icon?: unknown }
  provider?: Provider
}>

/** Some wallets put `window.ethereum` there late and say nothing. */
const looks = 20
const lookMs = 500
const nameLengthMax = 40

export const wallets: Wallet[] = []

/** Calls back whenever the list has changed. A strict page makes some wallets late, so it listens for ever. */
export function watchWallets(changed: () => void): void {
  addEventListener('eip6963:announceProvider', (event) => {
    const { info, provider } = (event as Announcement).detail ?? {}
    const id = String(info?.uuid)
    if (typeof provider?.request !== 'function' || wallets.some((wallet) => wallet.id === id)) return
    // It stands for one that has now said its name.
    const unnamed = wallets.findIndex((wallet) => wallet.id === '')
    if (unnamed >= 0) wallets.splice(unnamed, 1)
    const icon = String(info?.icon)
    wallets.push({
      id,
      name: String(info?.name ?? '').slice(0, nameLengthMax),
      icon: icon.startsWith('data:image/') ? icon : '',
      provider,
    })
    changed()
  })
  dispatchEvent(new Event('eip6963:requestProvider'))

  const look = () => {
    const provider = (window as { ethereum?: Provider }).ethereum
    if (wallets.length > 0 || typeof provider?.request !== 'function') return
    wallets.push({ id: '', name: '', icon: '', provider })
    changed()
  }
  addEventListener('ethereum#initialized', look)
  let left = looks
  const timer = setInterval(() => {
    look()
    if (--left === 0) clearInterval(timer)
  }, lookMs)
}
