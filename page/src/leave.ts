import { find } from './show.ts'
import { terms } from './terms.ts'

const secondsBefore = 10

let timer: ReturnType<typeof setInterval> | undefined
let hasStarted = false

/** Leads back to the store once the receipt has been there to be seen, unless the buyer wants to stay. */
export function leaveSoon(): void {
  const link = find('#return') as HTMLAnchorElement | null
  const text = find('#leaving')
  if (hasStarted || !link || !text || terms()?.status !== 'COMPLETED') return
  hasStarted = true
  let left = secondsBefore
  const tick = () => {
    if (left === 0) {
      clearInterval(timer)
      location.assign(link.href)
    }
    const count = find('#seconds')
    if (count) count.textContent = String(left--)
  }
  text.hidden = false
  tick()
  timer = setInterval(tick, 1_000)
}

export function stay(): void {
  clearInterval(timer)
  find('#leaving')?.setAttribute('hidden', '')
  find('#return')?.focus()
}
