import { find } from './show.ts'
import { terms } from './terms.ts'

const secondsBefore = 10

let timer: ReturnType<typeof setInterval> | undefined
let left = secondsBefore

/** Leads back to the store once the receipt has been there to be seen, unless the buyer wants to stay. */
export function leaveSoon(): void {
  if (timer !== undefined || !find('#leaving') || terms()?.status !== 'COMPLETED') return
  tick()
  timer = setInterval(tick, 1_000)
}

/** Looks for its parts each time: the page may have been put in place anew, or say something else by now. */
function tick(): void {
  const link = find('#return') as HTMLAnchorElement | null
  const text = find('#leaving')
  const count = find('#seconds')
  if (!link || !text || !count) return
  text.hidden = false
  count.textContent = String(left)
  if (left-- > 0) return
  clearInterval(timer)
  location.assign(link.href)
}

export function stay(): void {
  clearInterval(timer)
  find('#leaving')?.setAttribute('hidden', '')
  find('#return')?.focus()
}
