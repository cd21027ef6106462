import { find } from './show.ts'
import { terms } from './terms.ts'

const secondsBefore = 10

let timer: ReturnType<typeof setInterval> | undefined
let left = secondsBefore

/** Returns the buyer to the store after showing the receipt for a few seconds, unless the buyer chooses to stay. */
export function leaveSoon(): void {
  if (timer !== undefined || !find('#leaving') || terms()?.status !== 'COMPLETED') return
  tick()
  timer = setInterval(tick, 1_000)
}

/** Looks up its elements every time, because the page may have been replaced since. */
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
