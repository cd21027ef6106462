/**
 * Keeps a screen current. When the server reports a change in the store, or after the time that the screen names, the
 * screen is loaded again and replaced. While the member types, selects or confirms something, the new screen waits until
 * they are done.
 */
import { load } from '../load.ts'

/** How soon to check again while the member types, selects or confirms. */
const busyMs = 2_000

const screen = (): HTMLElement | null => document.querySelector('main[data-live]')

/** Calls `replaced` each time it has replaced the screen. */
export function watchLive(replaced: () => void): void {
  const address = screen()?.dataset.live
  if (!address) return
  const source = new EventSource(address)
  let newest = ''
  let isLoading = false
  let isDue = false
  let timer = 0
  let again = 0
  lookAgain()
  source.onmessage = ({ data }) => {
    newest = data
    void catchUp()
  }
  document.addEventListener('visibilitychange', () => void catchUp())

  /** A screen on which something is about to happen that nothing reports names the seconds after which it is due. */
  function lookAgain(): void {
    clearTimeout(again)
    isDue = false
    const seconds = Number(screen()?.dataset.again ?? 0)
    if (seconds > 0)
      again = setTimeout(() => {
        isDue = true
        void catchUp()
      }, seconds * 1_000)
  }

  async function catchUp(): Promise<void> {
    const isNew = newest !== '' && newest !== screen()?.dataset.sequence
    if (isLoading || document.hidden || !(isNew || isDue)) return
    clearTimeout(timer)
    if (isBusy()) {
      timer = setTimeout(() => void catchUp(), busyMs)
      return
    }
    isLoading = true
    const asked = newest
    const next = (await load(location.href, ['X-Refresh', '1']))?.querySelector<HTMLElement>(
      'main[data-live]',
    )
    isLoading = false
    if (next && !isBusy()) {
      replace(next)
      replaced()
    }
    lookAgain()
    // Loads again if something new was reported meanwhile. It does not retry by itself when no screen came (signed out,
    // or unreachable).
    if (newest !== asked) void catchUp()
  }
}

function isBusy(): boolean {
  const main = screen()
  if (!main) return false
  const fields = main.querySelectorAll<HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement>(
    'input, select, textarea',
  )
  const isTouched = [...fields].some((field) => {
    if (field instanceof HTMLSelectElement)
      return [...field.options].some((each) => each.selected !== each.defaultSelected && each.defaultSelected)
    if (field instanceof HTMLInputElement && /radio|checkbox/.test(field.type))
      return field.checked !== field.defaultChecked
    return field.value !== field.defaultValue || field === document.activeElement
  })
  const selection = getSelection()
  const isSelecting = selection !== null && !selection.isCollapsed && main.contains(selection.anchorNode)
  return isTouched || isSelecting || main.querySelector('button:disabled, button:active, .ask[open]') !== null
}

/** Keeps unfolded parts, the focus and shown messages as they were. */
function replace(next: HTMLElement): void {
  const main = screen()
  if (!main) return
  for (const fold of next.querySelectorAll<HTMLDetailsElement>('details[id]')) {
    const old = document.getElementById(fold.id)
    if (old instanceof HTMLDetailsElement) fold.open = old.open
  }
  for (const said of main.querySelectorAll<HTMLElement>('[role="alert"][id]:not([hidden])')) {
    const place = next.querySelector<HTMLElement>(`#${said.id}`)
    if (!place) continue
    place.textContent = said.textContent
    place.hidden = false
  }
  const focused = main.contains(document.activeElement) ? describe(document.activeElement) : null
  main.replaceWith(document.adoptNode(next))
  if (focused)
    [...next.querySelectorAll<HTMLElement>('a, button, summary')]
      .find((each) => describe(each) === focused)
      ?.focus()
}

function describe(element: Element | null): string {
  return element ? `${element.tagName} ${element.getAttribute('href')} ${element.textContent}` : ''
}
