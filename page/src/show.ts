import { readTerms, terms, termsIn } from './terms.ts'
import { familyOf } from './wallets/family.ts'
import { wallets } from './wallets/found.ts'

/**
 * The server renders the page for every state of a checkout. This script only shows and hides parts of it, and has the
 * server render it again when something has changed.
 */
type Step = 'connecting' | 'switching' | 'signing' | 'settling' | 'offline' | 'unavailable'
export type Trouble = 'rejected' | 'pending' | 'funds' | 'smart' | 'chain' | 'tab' | 'changed' | 'failed'

/** A reason to stop for which the page has a message. */
export class Stop extends Error {
  readonly trouble: Trouble
  constructor(trouble: Trouble) {
    super(trouble)
    this.trouble = trouble
  }
}

/** Maps the error codes of EIP-1193 and EIP-1474. Some wallets wrap the code, others only put it into words. */
export function troubleOf(error: unknown): Trouble {
  if (error instanceof Stop) return error.trouble
  const { code, data, message } = (error ?? {}) as {
    code?: unknown
    data?: { originalError?: { code?: unknown } }
    message?: unknown
  }
  switch (data?.originalError?.code ?? code) {
    case 4001:
    case 4100:
      return 'rejected'
    case -32002:
      return 'pending'
    case 4200:
    case -32601:
      return 'smart'
    case 4900:
    case 4901:
      return 'chain'
    default:
      return /reject|declin|denied|cancel/i.test(String(message)) ? 'rejected' : 'failed'
  }
}

export const find = (selector: string): HTMLElement | null => document.querySelector(selector)

let shown: Step | Trouble | null = null
/** Steps before anything is signed. */
const asking: readonly (Step | Trouble | null)[] = ['connecting', 'switching', 'signing']
const signed: readonly (Step | Trouble | null)[] = ['settling', 'offline', 'unavailable']

/** A step hides every way to pay, so that nobody pays twice; a trouble leaves them visible. */
export function show(state: Step | Trouble | null): void {
  shown = state
  const isStep = asking.includes(state) || signed.includes(state)
  for (const part of document.querySelectorAll<HTMLElement>('[data-state]')) {
    part.hidden = part.dataset.state !== state
  }
  find('#flow')?.toggleAttribute('data-busy', isStep)
  find('#ways')?.toggleAttribute('hidden', isStep)
  find('#send')?.toggleAttribute('hidden', isStep)
  find('#back')?.toggleAttribute('hidden', !asking.includes(state))
  if (state === 'smart') find('#send')?.setAttribute('open', '')
}

/** Shows the elements that need this script: they are hidden until it runs. */
export function dress(): void {
  readTerms()
  for (const part of document.querySelectorAll<HTMLElement>('[data-script]')) part.hidden = false
  const format = new Intl.DateTimeFormat(document.documentElement.lang, {
    dateStyle: 'medium',
    timeStyle: 'short',
  })
  for (const time of document.querySelectorAll('time'))
    time.textContent = format.format(new Date(time.dateTime))
  listWallets()
  show(shown)
}

/** One button per wallet that can pay. Existing buttons stay in the document, because one may have the focus. */
export function listWallets(): void {
  const list = find('#wallets')
  if (!list) return
  const family = familyOf(terms()?.options ?? [], wallets)
  for (const choice of document.querySelectorAll<HTMLInputElement>('#families input'))
    choice.checked = choice.value === family
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
  document.documentElement.toggleAttribute('data-wallet', isFound)
}

let last = Promise.resolve(true)

/**
 * Has the server render the page again, and replaces the current one if anything has changed. Returns false if the page
 * cannot be loaded now. Runs one at a time: an older page must never replace a newer one.
 */
export function refresh(): Promise<boolean> {
  last = last.then(replace)
  return last
}

async function replace(): Promise<boolean> {
  const next = await load()
  const main = next?.querySelector('main')
  if (!next || !main) return false
  const before = terms()
  if (before && before.digest === termsIn(next)?.digest) return true
  const typed = find('input[name=hash]') as HTMLInputElement | null
  const open = new Set([...document.querySelectorAll('details[open]')].map(({ id }) => id))
  document.title = next.title
  find('main')?.replaceWith(document.adoptNode(main))
  for (const details of document.querySelectorAll('details')) details.open ||= open.has(details.id)
  const input = find('input[name=hash]') as HTMLInputElement | null
  if (typed && input) input.value = typed.value
  dress()
  // Moves the focus so that screen readers announce the new status.
  if (terms()?.status !== before?.status) find('#status')?.focus()
  return true
}

/** XMLHttpRequest parses a document without any function that Trusted Types guards, and runs no script in it. */
function load(): Promise<Document | null> {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest()
    request.open('GET', location.href.split('#')[0] ?? '')
    request.setRequestHeader('Accept', 'text/html')
    request.responseType = 'document'
    request.onloadend = () => resolve(request.status === 200 ? request.responseXML : null)
    request.send()
  })
}
