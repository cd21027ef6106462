import { setTimeout as wait } from 'node:timers/promises'
import type { Chain } from './chains/chain.ts'
import { checkChain } from './chains/check.ts'
import { followOnce } from './chains/follower.ts'
import { releaseFollower } from './chains/rows.ts'
import type { Signer } from './chains/signer.ts'
import { expireCheckouts } from './checkouts/expire.ts'
import { reviewCheckouts } from './checkouts/review.ts'
import { deleteOldAnswers } from './checkouts/rows.ts'
import { updateStatus } from './checkouts/update-status.ts'
import type { Context } from './context.ts'
import type { Transaction } from './db.ts'
import { assignWaitingSequences } from './events/assign-sequence.ts'
import { openDeliverer } from './events/webhooks/deliver.ts'
import { tidyDeliveries } from './events/webhooks/deliveries.ts'
import { randomText } from './ids.ts'
import { buryDead, openListener } from './payments/credits/resolve.ts'
import { openChains } from './payments/doors.ts'
import { stepLane } from './payments/lanes/lane.ts'
import { releaseSettler } from './payments/lanes/rows.ts'
import { reverseGone } from './payments/transfers/gone.ts'
import { lookUpPasted } from './payments/transfers/look-up.ts'
import { freeAmounts } from './payments/transfers/reserve.ts'
import { refreshRates } from './rates/refresh.ts'
import { sources } from './rates/sources.ts'
import { runIfDue } from './schedule.ts'
import type { Channel } from './wake.ts'

/**
 * Background work: loops that look for something to do, do it, and look again at once; when there was nothing, they
 * rest. Every loop may run in any number of processes, and may be killed anywhere: what is left undone is found again.
 */
export type Worker = { stop(): Promise<void> }

type Loop = {
  readonly name: string
  readonly restMs: number
  /** What cuts the rest short. */
  readonly wakeOn?: Channel
  /** Whether there may be more. What comes up later may call `again`. */
  readonly run: (again: () => void) => Promise<boolean>
  /** Lets another process go on at once. */
  readonly release?: () => Promise<void>
}

/** After a failure: long enough not to hammer a database that is coming back. */
const failureRestMs = 1_000
/** Twice what the interface promises, so that a repeat at the last minute still finds its answer. */
const answersKeptHours = 48
const answersPerRun = 5_000

export function startWorker(ctx: Context, signers: readonly Signer[] = []): Worker {
  const stopping = new AbortController()
  const running = [...loops(ctx), ...settlement(ctx, signers)].map((loop) =>
    runLoop(ctx, loop, stopping.signal),
  )
  return {
    async stop() {
      stopping.abort()
      await Promise.all(running)
    },
  }
}

function loops(ctx: Context): Loop[] {
  const turn = { after: '' }
  const deliverer = openDeliverer(ctx)
  return [
    { name: 'assign-sequence', restMs: 100, run: async () => (await assignWaitingSequences(ctx, turn)) > 0 },
    { name: 'deliver', restMs: 500, wakeOn: 'events', run: deliverer.step, release: deliverer.idle },
    scheduled(ctx, 'tidy-deliveries', 10, () => tidyDeliveries(ctx, ctx.now())),
    { name: 'expire', restMs: 1_000, run: async () => (await expireCheckouts(ctx, ctx.now())) > 0 },
    ...sources
      .filter(({ setting }) => ctx.config[setting] !== '')
      .map((source) =>
        scheduled(ctx, `rates-${source.name}`, source.refreshMs / 1_000, () =>
          refreshRates(ctx, source, ctx.now()),
        ),
      ),
    scheduled(ctx, 'review', 60, () => reviewCheckouts(ctx, ctx.now())),
    scheduled(ctx, 'free-amounts', 600, () => freeAmounts(ctx)),
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

/** Settling: one follower and one grave-digger a network, one lane a network and key. */
function settlement(ctx: Context, signers: readonly Signer[]): Loop[] {
  const holder = randomText(16)
  const look = (tx: Transaction, ids: readonly string[], now: Date) => updateStatus(ctx, tx, ids, now)
  return openChains(ctx).flatMap((chain): Loop[] => {
    const { caip2, blockTimeMs } = chain.network
    const listener = openListener(ctx, chain, look)
    const check = openCheck(ctx, chain)
    return [
      {
        name: `follow ${caip2}`,
        // The next block is seen an eighth of its time after it came.
        restMs: blockTimeMs / 8,
        run: async () => (await check()) && (await followOnce(ctx, chain, holder, listener)) === true,
        release: () => releaseFollower(ctx.db, caip2, holder),
      },
      { name: `bury ${caip2}`, restMs: blockTimeMs, run: async () => (await buryDead(ctx, chain, look)) > 0 },
      {
        name: `reverse ${caip2}`,
        restMs: blockTimeMs,
        run: async () => (await reverseGone(ctx, chain, look)) > 0,
      },
      {
        name: `look up ${caip2}`,
        restMs: 1_000,
        wakeOn: 'claims',
        run: async () => (await lookUpPasted(ctx, chain, look)) > 0,
      },
      ...signers.map((signer): Loop => {
        const lane = { chain, signer, holder, updateStatus: look }
        return {
          name: `lane ${caip2} ${signer.address}`,
          restMs: 250,
          wakeOn: 'claims',
          run: async () => (await check()) && (await stepLane(ctx, lane)) === true,
          release: () => releaseSettler(ctx.db, caip2, signer.address, holder),
        }
      }),
    ]
  })
}

/** Nothing is followed or sent on a chain before it has been found to be the right one. */
function openCheck(ctx: Context, chain: Chain): () => Promise<boolean> {
  let isGood = false
  return async () => {
    if (isGood) return true
    const mistakes = await checkChain(chain)
    if (mistakes.length > 0) throw new Error(mistakes.join(' '))
    isGood = true
    ctx.log.info({ network: chain.network.caip2 }, 'the chain is what it should be')
    return true
  }
}

async function runLoop(ctx: Context, loop: Loop, stopping: AbortSignal): Promise<void> {
  let wake = () => {}
  let isWoken = false
  const again = () => {
    isWoken = true
    wake()
  }
  const unlisten = loop.wakeOn ? ctx.db.wakeUps.listen(loop.wakeOn, again) : () => {}
  while (!stopping.aborted) {
    isWoken = false
    let restMs = loop.restMs
    try {
      if (await loop.run(again)) restMs = 0
    } catch (error) {
      restMs = failureRestMs
      ctx.metrics.taskFailures.inc({ task: loop.name })
      ctx.log.error({ task: loop.name, err: error }, 'background work failed and will be tried again')
    }
    if (restMs === 0 || (isWoken && restMs !== failureRestMs)) continue
    const rested = new AbortController()
    wake = () => rested.abort()
    await wait(restMs, undefined, { signal: AbortSignal.any([stopping, rested.signal]) }).catch(() => {})
  }
  unlisten()
  await loop
    .release?.()
    .catch((error) => ctx.log.warn({ task: loop.name, err: error }, 'a lease could not be given back'))
}
