/**
 * Keeps a screen current. The server says that something happened in the store; the screen is loaded again and takes the
 * place of the old one, unless the member is in the middle of something there: then it waits until they are done.
 */
import { load } from '../load.ts'

/** While the member types, selects or confirms, look again after this. */
const busyMs = 2_000

const screen = (): HTMLElement | null => document.querySelector('main[data-live]')

/** `replaced` is called for every screen that took the place of another. */
export function watchLive(replaced: () => void): void {
  const address = screen()?.dataset.live
  if (!address) return
  const source = new EventSource(address)
  let newest = ''
  let isLoading = false
  let timer = 0
  source.onmessage = ({ data }) => {
    newest = data
    void catchUp()
  }
  document.addEventListener('visibilitychange', () => void catchUp())

  async function catchUp(): Promise<void> {
    if (isLoading || document.hidden || newest === '' || newest === screen()?.dataset.sequence) return
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
    // Without a screen (signed out, or unreachable) only something new is a reason to ask again.
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
  return isTouched || isSelecting || main.querySelector('button:disabled') !== null
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
