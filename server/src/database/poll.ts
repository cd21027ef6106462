import type { Channel, WakeUps } from './wake.ts'

/**
 * Runs one query for everyone who waits in a process: on request, after every wake-up on its channel, and on a timer in
 * case a wake-up was lost. It never runs twice at once: if it is requested while it runs, it runs once more afterwards,
 * because the change may have come too late for the current run.
 */
type Poll = {
  /** Starts listening. Nothing runs before that. */
  begin(): void
  ask(): void
  close(): void
}

export function openPoll(
  wakeUps: WakeUps,
  options: {
    readonly channel: Channel
    /** How often it runs without a wake-up: everything works without them, only slower. */
    readonly everyMs: number
    /** The minimum time between the starts of two runs. */
    readonly spacingMs?: number
    readonly now: () => Date
    /** Whether anyone is waiting. If not, the query is not worth running. */
    readonly isNeeded: () => boolean
    readonly poll: () => Promise<void>
    /** A failed run is not repeated at once: the timer starts the next one. */
    readonly onError: (error: unknown) => void
  },
): Poll {
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
    // If the clock was set back, `leftMs` could be far longer than the spacing.
    if (leftMs > 0) delay = setTimeout(() => void run(), Math.min(leftMs, spacingMs)).unref()
    else void run()
  }

  async function run(): Promise<void> {
    delay = null
    isRunning = true
    begunAt = options.now().getTime()
    try {
      await options.poll()
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
