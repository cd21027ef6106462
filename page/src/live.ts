import { refresh } from './show.ts'
import { path, terms } from './terms.ts'

/**
 * Watches the checkout for changes: by server-sent events, by polling where those do not get through, and by polling at
 * once when the tab becomes visible again, because a phone freezes it while the wallet is open.
 */
const askMs = 3_000
/** An event source that has closed is opened again after this many polls. */
const asksBeforeReopening = 5

export function watchLive(): void {
  let source = open()
  let asks = 0
  setInterval(() => {
    if (isOver() || document.hidden || source.readyState === EventSource.OPEN) return
    void ask()
    if (source.readyState === EventSource.CLOSED && ++asks % asksBeforeReopening === 0) source = open()
  }, askMs)
  // A page that is over is looked at too: money may have gone back since.
  const look = () => {
    if (!document.hidden) void ask()
  }
  addEventListener('visibilitychange', look)
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) look()
  })
  addEventListener('online', look)

  function open(): EventSource {
    const opened = new EventSource(`${path}/live`)
    opened.onmessage = ({ data }) => {
      hear(data)
      if (isOver()) opened.close()
    }
    return opened
  }
}

function isOver(): boolean {
  const { status, isAwaiting } = terms() ?? {}
  return (status === 'COMPLETED' || status === 'CANCELED') && !isAwaiting
}

async function ask(): Promise<void> {
  try {
    const answer = await fetch(`${path}/status`)
    if (answer.ok) hear(await answer.text())
  } catch {}
}

let isRefreshing = false

function hear(text: string): void {
  const { digest } = JSON.parse(text) as { digest?: unknown }
  if (isRefreshing || typeof digest !== 'string' || digest === terms()?.digest) return
  isRefreshing = true
  void refresh().finally(() => {
    isRefreshing = false
  })
}
