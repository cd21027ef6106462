import { setTimeout as wait } from 'node:timers/promises'
import { expireCheckouts } from './checkouts/expire.ts'
import { deleteOldAnswers } from './checkouts/rows.ts'
import type { Context } from './context.ts'
import { assignWaitingSequences } from './events/assign-sequence.ts'
import { refreshRates } from './rates/refresh.ts'
import { sources } from './rates/sources.ts'
import { runIfDue } from './schedule.ts'

/**
 * Background work: loops that look for something to do, do it, and look again at once; when there was nothing, they
 * rest. Every loop may run in any number of processes, and may be killed anywhere: what is left undone is found again.
 */
export type Worker = { stop(): Promise<void> }

type Loop = {
  readonly name: string
  readonly restMs: number /** Whether there may be more. */
  readonly run: () => Promise<boolean>
}

/** After a failure: long enough not to hammer a database that is coming back. */
const failureRestMs = 1_000
/** Twice what the interface promises, so that a repeat at the last minute still finds its answer. */
const answersKeptHours = 48
const answersPerRun = 5_000

export function startWorker(ctx: Context): Worker {
  const stopping = new AbortController()
  const running = loops(ctx).map((loop) => runLoop(ctx, loop, stopping.signal))
  return {
    async stop() {
      stopping.abort()
      await Promise.all(running)
    },
  }
}

function loops(ctx: Context): Loop[] {
  return [
    { name: 'assign-sequence', restMs: 100, run: async () => (await assignWaitingSequences(ctx)) > 0 },
    { name: 'expire', restMs: 1_000, run: async () => (await expireCheckouts(ctx, ctx.now())) > 0 },
    ...sources
      .filter(({ setting }) => ctx.config[setting] !== '')
      .map((source) =>
        scheduled(ctx, `rates-${source.name}`, source.refreshMs / 1_000, () =>
          refreshRates(ctx, source, ctx.now()),
        ),
      ),
    scheduled(ctx, 'forget-answers', 600, async () => {
      while ((await deleteOldAnswers(ctx.db, answersKeptHours, answersPerRun)) === answersPerRun);
    }),
  ]
}

function scheduled(ctx: Context, name: string, everySeconds: number, run: () => Promise<void>): Loop {
  return {
    name,
    restMs: 1_000,
    run: async () => {
      await runIfDue(ctx.db, { name, everySeconds, leaseSeconds: 30, run })
      return false
    },
  }
}

async function runLoop(ctx: Context, loop: Loop, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    let restMs = loop.restMs
    try {
      if (await loop.run()) restMs = 0
    } catch (error) {
      restMs = failureRestMs
      ctx.metrics.taskFailures.inc({ task: loop.name })
      ctx.log.error({ task: loop.name, err: error }, 'background work failed and will be tried again')
    }
    if (restMs > 0) await wait(restMs, undefined, { signal: stopping }).catch(() => {})
  }
}
