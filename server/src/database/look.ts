import type { Channel, WakeUps } from './wake.ts'

/**
 * One look on behalf of everyone who waits in a process. It runs when it is asked for, after every wake-up on its
 * channel, and by the clock in case a wake-up was lost. It never runs twice at once: if it is asked for while it runs,
 * it runs once more afterwards, because what was asked for may have come too late for this one.
 */
export type Look = {
  /** Starts listening. Until then nothing is looked at. */
  begin(): void
  ask(): void
  close(): void
}

export function openLook(
  wakeUps: WakeUps,
  options: {
    readonly channel: Channel
    /** Everything works without wake-ups, only slower: this is how often it looks anyway. */
    readonly everyMs: number
    /** The least time between the beginnings of two looks. */
    readonly spacingMs?: number
    readonly now: () => Date
    /** Whether anyone waits. If not, no look is worth its query. */
    readonly isNeeded: () => boolean
    readonly look: () => Promise<void>
    /** A look that failed is not repeated at once: the clock asks for the next one. */
    readonly onError: (error: unknown) => void
  },
): Look {
  const { spacingMs = 0 } = options
  let stopListening: (() => void) | null = null
  let clock: NodeJS.Timeout | null = null
  let delay: NodeJS.Timeout | null = null
  let begunAt = Number.NEGATIVE_INFINITY
  let isRunning = false
  let isAskedAgain = false
  let isClosed = false

  function ask(): void {
    if (isClosed || delay || !options.isNeeded()) return
    if (isRunning) {
      isAskedAgain = true
      return
    }
    const leftMs = begunAt + spacingMs - options.now().getTime()
    // A clock that was set back must not make it wait for longer than that.
    if (leftMs > 0) delay = setTimeout(() => void run(), Math.min(leftMs, spacingMs)).unref()
    else void run()
  }

  async function run(): Promise<void> {
    delay = null
    isRunning = true
    begunAt = options.now().getTime()
    try {
      await options.look()
    } catch (error) {
      options.onError(error)
    }
    isRunning = false
    if (!isAskedAgain) return
    isAskedAgain = false
    ask()
  }

  return {
    begin() {
      if (isClosed || clock) return
      stopListening = wakeUps.listen(options.channel, ask)
      clock = setInterval(ask, options.everyMs).unref()
    },
    ask,
    close() {
      isClosed = true
      stopListening?.()
      if (clock) clearInterval(clock)
      if (delay) clearTimeout(delay)
    },
  }
}
