import { load } from './load.ts'
import { readTerms, terms, termsIn } from './terms.ts'
import type { Trouble } from './trouble.ts'
import { betterOption } from './wallets/family.ts'
import { wallets } from './wallets/found.ts'

/**
 * The server renders the page for every state of a checkout. This script only shows and hides parts of it, and has the
 * server render it again when something has changed.
 */
type Step = 'connecting' | 'switching' | 'signing' | 'again' | 'settling' | 'offline' | 'unavailable'

export const find = (selector: string): HTMLElement | null => document.querySelector(selector)

let shown: Step | Trouble | null = null
/** Steps before anything is signed. */
const asking: readonly (Step | Trouble | null)[] = ['connecting', 'switching', 'signing', 'again']
const signed: readonly (Step | Trouble | null)[] = ['settling', 'offline', 'unavailable']

const isUnderWay = (state: typeof shown) => asking.includes(state) || signed.includes(state)

/** A step hides every way to pay, so that the buyer does not pay twice; a trouble leaves them visible. */
export function show(state: Step | Trouble | null): void {
  shown = state
  const isStep = isUnderWay(state)
  for (const part of document.querySelectorAll<HTMLElement>('[data-state]')) {
    part.hidden = part.dataset.state !== state
  }
  find('#flow')?.toggleAttribute('data-busy', isStep)
  find('#ways')?.toggleAttribute('hidden', isStep)
  find('#back')?.toggleAttribute('hidden', !asking.includes(state))
}

/** Shows the elements that need this script: they are hidden until it runs. */
export function dress(): void {
  readTerms()
  for (const part of document.querySelectorAll<HTMLElement>('[data-script]')) part.hidden = false
  for (const time of document.querySelectorAll('time')) {
    const format = new Intl.DateTimeFormat(document.documentElement.lang, {
      dateStyle: 'medium',
      timeStyle: 'exact' in time.dataset ? 'long' : 'short',
    })
    time.textContent = format.format(new Date(time.dateTime))
  }
  listWallets()
  show(shown)
}

/** One button per wallet that can pay. Existing buttons stay in the document, because one may have the focus. */
export function listWallets(): void {
  const list = find('#wallets')
  const now = terms()
  if (!list || !now) return
  // Unless the buyer has chosen a network, the page turns to one that this browser can pay on.
  const better = !/[?&]option=/.test(location.search) && shown === null && betterOption(now, wallets)
  const link = better && (find(`[data-option="${better.place}"]`) as HTMLAnchorElement | null)
  if (link) void follow(link.href)
  const family = now.options.find(({ place }) => place === now.chosen)?.family
  const listed = wallets.filter((wallet) => wallet.family === family)
  for (const button of list.querySelectorAll<HTMLElement>('button')) {
    if (!listed.some(({ id }) => id === button.dataset.wallet)) button.remove()
  }
  for (const { id, name, icon } of listed) {
    if ([...list.children].some((button) => (button as HTMLElement).dataset.wallet === id)) continue
    const button = document.createElement('button')
    const label = document.createElement('span')
    button.type = 'button'
    button.dataset.wallet = id
    // Text, never markup: the wallet chooses its own name.
    label.textContent = (list.dataset.label ?? '').replace(
      '{wallet}',
      () => name || (list.dataset.unnamed ?? ''),
    )
    if (icon) {
      const image = document.createElement('img')
      image.src = icon
      image.alt = ''
      button.append(image)
    }
    button.append(label)
    list.append(button)
  }
  const isFound = listed.length > 0
  find('#no-wallet')?.toggleAttribute('hidden', isFound)
  find('#sign-once')?.toggleAttribute('hidden', !isFound)
}

/** A phone's browser has no wallet, so the page turns to the apps, unless the buyer has chosen a way. */
export function turnToApps(): void {
  const isPhone = matchMedia('(hover: none) and (pointer: coarse)').matches
  const isChosen = /[?&](way|notice|unsent)=/.test(location.search)
  const link = find('a[data-way=phone]') as HTMLAnchorElement | null
  const isWallet = find('a[data-way=wallet]')?.hasAttribute('aria-current')
  if (isPhone && !isChosen && isWallet && wallets.length === 0 && shown === null && link)
    void follow(link.href)
}

/** Says which account the wallet offered and, where it is known, what the account has. */
export function showHolder(account: string, units: bigint | null, decimals: number): void {
  const holder = find('#holder')
  const [code, balance] = [holder?.querySelector('code'), holder?.querySelector('b')]
  if (!holder || !code || !balance) return
  const digits = String(units ?? 0n).padStart(decimals + 1, '0')
  const [whole, fraction] = [digits.slice(0, -decimals), digits.slice(-decimals).replace(/0+$/, '')]
  code.textContent = `${account.slice(0, 6)}…${account.slice(-4)}`
  balance.textContent = `${whole}.${fraction.padEnd(2, '0')}`
  balance.closest('div')?.toggleAttribute('hidden', units === null)
  holder.hidden = false
}

let last = Promise.resolve(true)

/**
 * Has the server render the page again, and replaces the current one if anything has changed. Returns false if the page
 * cannot be loaded now. Runs one at a time: an older page must never replace a newer one.
 */
export function refresh(): Promise<boolean> {
  last = last.then(() => replace(null))
  return last
}

/** Shows the page with another choice, as a link to it would. Returns false if it cannot be loaded now. */
export function follow(address: string): Promise<boolean> {
  last = last.then(() => replace(address))
  return last
}

async function replace(address: string | null): Promise<boolean> {
  if (address === location.href) return true
  const next = await load(address ?? location.href, ['Accept', 'text/html'])
  const main = next?.querySelector('main')
  if (!next || !main) return false
  // During a wallet's request the ways to pay are hidden. A choice that was made just before it counts for nothing.
  if (address && isUnderWay(shown)) return true
  const before = terms()
  if (address) history.replaceState(null, '', address)
  else if (before && before.digest === termsIn(next)?.digest) return true
  const typed = find('input[name=hash]') as HTMLInputElement | null
  document.title = next.title
  find('main')?.replaceWith(document.adoptNode(main))
  find('footer')?.replaceWith(
    document.adoptNode(next.querySelector('footer') ?? document.createElement('footer')),
  )
  const input = find('input[name=hash]') as HTMLInputElement | null
  if (typed && input) input.value = typed.value
  if (address) shown = null
  dress()
  // Moves the focus so that screen readers announce what is new.
  if (address) (find('#way') ?? find('#status'))?.focus()
  else if (terms()?.status !== before?.status || terms()?.isPayable !== before?.isPayable)
    find('#status')?.focus()
  return true
}
