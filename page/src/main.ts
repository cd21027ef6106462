import { leaveSoon, stay } from './leave.ts'
import { watchLive } from './live.ts'
import { pay, startOver } from './pay.ts'
import { hasSigned, settle } from './settle.ts'
import { dress, listWallets } from './show.ts'
import { terms } from './terms.ts'
import { watchWallets } from './wallets/discover.ts'
import { choose } from './wallets/family.ts'
import { wallets } from './wallets/found.ts'

const copiedMs = 2_000

dress()
if (terms()) {
  watchWallets(listWallets)
  watchLive()
  // A buyer who opens a receipt again wants to read it: redirect only after a payment that this tab saw complete.
  if (terms()?.status !== 'COMPLETED' || hasSigned()) {
    new MutationObserver(leaveSoon).observe(document.body, { childList: true })
  }
  void settle()
}

// On the document, because refresh() replaces the content below it.
document.addEventListener('click', ({ target }) => {
  const button = (target as Element).closest('button')
  if (!button) return
  const wallet = wallets.find(({ id }) => id === button.dataset.wallet)
  if (wallet) void pay(wallet)
  else if (button.id === 'back') startOver()
  else if (button.id === 'stay') stay()
  else if (button.dataset.copy) void copy(button, button.dataset.copy)
})

document.addEventListener('change', ({ target }) => {
  const { name, value } = target as HTMLInputElement
  if (name !== 'family') return
  choose(value)
  listWallets()
})

async function copy(button: HTMLElement, text: string): Promise<void> {
  await navigator.clipboard.writeText(text)
  const label = button.textContent
  button.textContent = button.dataset.done ?? label
  setTimeout(() => {
    button.textContent = label
  }, copiedMs)
}
