/**
 * Parts of a screen, [data-sign], that ask a wallet in this browser for a refund's signature, an address or a proof.
 * The server wrote their texts and values. Each wallet found gets a button.
 */
import { troubleOf } from '../trouble.ts'
import { watchWallets } from '../wallets/discover.ts'
import { wallets } from '../wallets/found.ts'
import type { Provider } from '../wallets/provider.ts'
import type { StandardWallet } from '../wallets/standard.ts'
import { addressAsker } from './address.ts'
import { type Asker, place, textOf } from './place.ts'
import { Refused } from './post.ts'
import { proofAsker } from './proof.ts'
import { refundAsker } from './refund.ts'

function asker(): Asker {
  const askers: Readonly<Record<string, Asker>> = { address: addressAsker, proof: proofAsker }
  return askers[textOf('ask')] ?? refundAsker
}

let isWatching = false

/** Called again after the screen was replaced. */
export function offerWallets(): void {
  if (!place()) return
  if (isWatching) listWallets()
  else {
    isWatching = true
    const signers = {
      EVM: (provider: Provider) => asker().EVM(provider),
      SOLANA: (wallet: StandardWallet) => asker().SOLANA(wallet),
    }
    watchWallets(signers, listWallets)
  }
}

function listWallets(): void {
  const list = place()?.querySelector('[data-wallets]')
  if (!list) return
  const asked = textOf('sign').split(' ')
  const listed = wallets.filter(({ family }) => asked.includes(family))
  for (const button of list.querySelectorAll<HTMLElement>('button'))
    if (!listed.some(({ id }) => id === button.dataset.wallet)) button.remove()
  for (const { id, name } of listed) {
    if ([...list.children].some((button) => (button as HTMLElement).dataset.wallet === id)) continue
    const button = document.createElement('button')
    button.type = 'button'
    button.dataset.wallet = id
    if (list.hasAttribute('data-quiet')) button.className = 'quiet'
    // Text, never markup: the wallet chooses its own name.
    button.textContent = textOf('label').replace('{wallet}', () => name || textOf('unnamed'))
    list.append(button)
  }
  place()
    ?.querySelector('[data-no-wallet]')
    ?.toggleAttribute('hidden', listed.length > 0)
}

/** Asks this button's wallet and handles its answer. */
export async function askWallet(button: HTMLElement): Promise<'stays' | undefined> {
  const wallet = wallets.find(({ id }) => id === button.dataset.wallet)
  const asking = place()?.querySelector<HTMLElement>('[role="status"]')
  if (!wallet) return 'stays'
  if (asking) asking.hidden = false
  try {
    return await asker().use(await wallet.sign(() => {}), wallet.family)
  } catch (error) {
    if (error instanceof Refused) throw error
    throw new Refused(textOf(troubleOf(error)) || textOf('failed'))
  } finally {
    if (asking) asking.hidden = true
  }
}
