import type { Context } from '../context.ts'
import { type FairQueue, openFairQueue, type QueueWatch } from '../database/fair-queue.ts'
import { Problem } from '../problems.ts'
import { openLimiter } from './limits.ts'

/**
 * Limits how much of a process one store or one member can use. Refusals are counted without names; the log names the
 * store or member once a minute.
 */
export type Shares = {
  /** Throws a Problem beyond `perSecond` requests of one name. `whose` completes the Problem's sentence. */
  openRequests(perSecond: number, whose: string): (name: string) => void
  openFairQueue(of: 'store' | 'member', atOnce: number, waitingMax: number, placeMs?: number): FairQueue
  /** Counts a refusal. */
  refuse(share: Share, name: string, detail: string, retryAfterSeconds: number): Problem
}

type Share = 'requests' | 'queue' | 'changes'

/** A store that is refused a thousand times a minute is one line in the log. */
const noteEverySeconds = 60

export function openShares(ctx: Context, listener: 'api' | 'console'): Shares {
  const notes = openLimiter('note', 1, ctx.now, noteEverySeconds)

  function note(share: Share, name: string): void {
    ctx.metrics.shareRefusals.inc({ listener, share })
    if (notes.tryTake(`${share} ${name}`))
      ctx.log.warn(
        { share, of: name, listener },
        'refused a request beyond its share of the process; other stores and members are not held up',
      )
  }

  function refuse(share: Share, name: string, detail: string, retryAfterSeconds: number): Problem {
    note(share, name)
    return new Problem('rate_limited', detail, { retryAfterSeconds })
  }

  return {
    refuse,
    openRequests(perSecond, whose) {
      const limiter = openLimiter('share', perSecond, ctx.now)
      return (name) => {
        if (limiter.tryTake(name)) return
        throw refuse(
          'requests',
          name,
          `At most ${perSecond} requests per second are allowed for ${whose}.`,
          1,
        )
      }
    },
    openFairQueue: (of, atOnce, waitingMax, placeMs) => {
      const watch: QueueWatch = {
        moved: (state, by) => ctx.metrics.fairQueue.inc({ listener, of, state: states[state] }, by),
        refused: (name) => note('queue', name),
      }
      return openFairQueue(atOnce, waitingMax, watch, placeMs)
    },
  }
}

const states = { underWay: 'under_way', waiting: 'waiting' } as const
