import { leaveSoon, stay } from './leave.ts'
import { watchLive } from './live.ts'
import { pay, startOver } from './pay.ts'
import { hasSigned, settle } from './settle.ts'
import { dress, follow, listWallets, turnToApps } from './show.ts'
import { terms } from './terms.ts'
import { watchWallets } from './wallets/discover.ts'
import { signOnEvm } from './wallets/evm.ts'
import { remember } from './wallets/family.ts'
import { wallets } from './wallets/found.ts'
import { signOnSolana } from './wallets/solana.ts'

const copiedMs = 2_000
/** How long a phone's browser has to announce a wallet before the page turns to the wallet apps. */
const announcedMs = 1_000

dress()
if (terms()) {
  watchWallets({ EVM: signOnEvm, SOLANA: signOnSolana }, listWallets)
  watchLive()
  setTimeout(turnToApps, announcedMs)
  // A buyer who opens a receipt again wants to read it: redirect only after a payment that this tab saw complete.
  if (terms()?.status !== 'COMPLETED' || hasSigned()) {
    new MutationObserver(leaveSoon).observe(document.body, { childList: true })
  }
  void settle()
}

// On the document, because refresh() replaces the content below it.
document.addEventListener('click', (event) => {
  const { target, ctrlKey, metaKey, shiftKey, altKey } = event
  const link = (target as Element).closest<HTMLAnchorElement>('a[data-way], a[data-option]')
  // With a key held down, a click opens another tab or window.
  if (link && !(ctrlKey || metaKey || shiftKey || altKey)) {
    event.preventDefault()
    const chosen = terms()?.options.find(({ place }) => String(place) === link.dataset.option)
    if (chosen) remember(chosen.accepted.network)
    void follow(link.href).then((isDone) => {
      if (!isDone) location.assign(link.href)
    })
  }
  const button = (target as Element).closest('button')
  if (!button) return
  const wallet = wallets.find(({ id }) => id === button.dataset.wallet)
  if (wallet) void pay(wallet)
  else if (button.id === 'back') startOver()
  else if (button.id === 'stay') stay()
  else if (button.id === 'print') print()
  else if (button.dataset.copy) void copy(button, button.dataset.copy)
})

async function copy(button: HTMLElement, text: string): Promise<void> {
  await navigator.clipboard.writeText(text)
  const label = button.textContent
  button.textContent = button.dataset.done ?? label
  setTimeout(() => {
    button.textContent = label
  }, copiedMs)
}
