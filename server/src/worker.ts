import { setTimeout as wait } from 'node:timers/promises'
import { cancelUndone } from './checkouts/cancel.ts'
import { deleteOldAnswers } from './checkouts/create.ts'
import { expireCheckouts } from './checkouts/expire.ts'
import { cancelPaid } from './checkouts/links/cancel-open.ts'
import { numberEvents } from './checkouts/number-events.ts'
import { applyDecisions, forgetDecisions } from './checkouts/payments/apply-decisions.ts'
import { deleteOver, firstPass } from './checkouts/retention/delete.ts'
import { countRollups } from './checkouts/rollups/count.ts'
import { reviewCheckouts, updateStatus } from './checkouts/update-status.ts'
import { openUses, readLoad } from './checkouts/uses.ts'
import type { Context } from './context.ts'
import type { Database, Transaction } from './database/db.ts'
import { runIfDue } from './database/schedule.ts'
import { reportToDirectory } from './directory/report.ts'
import { openDeliverer } from './events/webhooks/deliver.ts'
import { tidyDeliveries } from './events/webhooks/deliveries.ts'
import { randomText, type StoreId } from './ids.ts'
import { forgetRecipients } from './mails/recipients.ts'
import { openMailer } from './mails/send.ts'
import { sendsMail } from './mails/write.ts'
import { mailAlerts } from './members/alert.ts'
import { firstPass as firstMailPass, mailPayments } from './members/payment-mails.ts'
import { bookDue } from './movements/book-due.ts'
import { countUndecided } from './payments/credits/store-payments.ts'
import { openMeasure } from './payments/measure.ts'
import type { AnySigner, Loop } from './payments/rail.ts'
import { listConnected, openRails } from './payments/rails.ts'
import { freeAmounts } from './payments/transfers/reserve.ts'
import { refreshRates } from './rates/refresh.ts'
import { sources } from './rates/sources.ts'
import { openRefundMeasure } from './refunds/measure.ts'
import { proveSent } from './refunds/prove-sent.ts'
import { countForStore } from './refunds/read.ts'
import { watchRefunds } from './refunds/watch.ts'

/**
 * Background work: each loop looks for work and does it. If it found some, it repeats at once, otherwise after a rest.
 * Every loop may run in any number of processes and may be killed at any point: unfinished work is found again.
 */
export type Worker = { stop(): Promise<void> }

/** Rest after a failure: long enough not to hammer a database that is coming back. */
const failureRestMs = 1_000
/** Twice the 24 hours that the API promises, so that a repeat at the last minute still finds its answer. */
const answersKeptHours = 48
const answersPerRun = 5_000

export function startWorker(ctx: Context, signers: readonly AnySigner[] = []): Worker {
  const stopping = new AbortController()
  const running = listLoops(ctx, signers).map((loop) => runLoop(ctx, loop, stopping.signal))
  return {
    async stop() {
      stopping.abort()
      await Promise.all(running)
    },
  }
}

export function listLoops(ctx: Context, signers: readonly AnySigner[]): Loop[] {
  const numbering = { after: '' }
  const booking = { after: '' }
  const counting = { after: '' }
  const watching = { after: '' }
  const pass = firstPass()
  const mailPass = firstMailPass()
  const deliverer = openDeliverer(ctx)
  return [
    {
      name: 'assign-sequence',
      restMs: 100,
      run: async () => (await numberEvents(ctx, numbering)) > 0,
    },
    { name: 'deliver', restMs: 500, wakeOn: 'events', run: deliverer.step, release: deliverer.idle },
    scheduled(ctx, 'tidy-deliveries', 10, () => tidyDeliveries(ctx, ctx.now())),
    {
      name: 'decide',
      restMs: 500,
      wakeOn: 'decisions',
      run: async () => (await applyDecisions(ctx, ctx.now())) > 0,
    },
    scheduled(ctx, 'forget-decisions', 600, () => forgetDecisions(ctx)),
    // Also once no mails are sent any more: nothing says to whom receipts were mailed for longer than an hour.
    scheduled(ctx, 'forget-recipients', 600, () => forgetRecipients(ctx.db)),
    ...(sendsMail(ctx)
      ? [
          { name: 'send-mails', restMs: 2_000, run: openMailer(ctx) },
          { name: 'alert', restMs: 30_000, run: () => mailAlerts(ctx, ctx.now()) },
          {
            name: 'mail-payments',
            restMs: 15_000,
            run: () => mailPayments(ctx, ctx.now(), readWaiting, mailPass),
          },
        ]
      : []),
    {
      name: 'watch-refunds',
      restMs: 500,
      wakeOn: 'outcomes',
      run: () => watchRefunds(ctx, watching),
    },
    { name: 'expire', restMs: 1_000, run: async () => (await expireCheckouts(ctx, ctx.now())) > 0 },
    { name: 'book-due', restMs: 1_000, run: () => bookDue(ctx, booking) },
    { name: 'count-rollups', restMs: 1_000, run: () => countRollups(ctx, counting) },
    { name: 'cancel-undone', restMs: 1_000, run: () => cancelUndone(ctx, ctx.now()) },
    ...sources
      .filter(({ setting }) => ctx.config[setting] !== '')
      .map((source) =>
        scheduled(ctx, `rates-${source.name}`, source.refreshMs / 1_000, () =>
          refreshRates(ctx, source, ctx.now()),
        ),
      ),
    scheduled(ctx, 'review', 60, () => reviewCheckouts(ctx, ctx.now())),
    scheduled(ctx, 'review-links', 60, () => cancelPaid(ctx, ctx.now())),
    {
      name: 'retention',
      restMs: 1_000,
      run: async () => {
        await deleteOver(ctx, pass, ctx.now())
        return false
      },
    },
    scheduled(ctx, 'free-amounts', 600, () => freeAmounts(ctx)),
    scheduled(ctx, 'forget-answers', 600, async () => {
      while ((await deleteOldAnswers(ctx.db, answersKeptHours, answersPerRun)) === answersPerRun);
    }),
    ...(ctx.directory ? [report(ctx)] : []),
    ...settlement(ctx, signers),
  ]
}

/** The number of payments to decide about is told up to this one. */
const decisionsMax = 1_000

async function readWaiting(db: Database, storeId: StoreId) {
  return {
    decisions: await countUndecided(db, storeId, decisionsMax),
    refunds: await countForStore(db, storeId),
  }
}

/** Reports to the directory that the cell shares with others. */
function report(ctx: Context): Loop {
  const uses = openUses(ctx.db)
  return scheduled(ctx, 'directory-report', 60, () => reportToDirectory(ctx, uses, () => readLoad(ctx.db)))
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

/** The settlement loops of every connected network. */
function settlement(ctx: Context, signers: readonly AnySigner[]): readonly Loop[] {
  const update = (tx: Transaction, ids: readonly string[], now: Date) => updateStatus(ctx, tx, ids, now)
  const work = { signers, holder: randomText(16), updateStatus: update }
  const rails = listConnected(openRails(ctx))
  const look = openMeasure(ctx, rails)
  const lookAtRefunds = openRefundMeasure(
    ctx,
    rails.map(({ network }) => network),
  )
  const measure: Loop = {
    name: 'measure',
    restMs: 10_000,
    run: async () => {
      await look()
      await lookAtRefunds()
      return false
    },
  }
  const proofs = rails
    .filter(({ sent }) => sent !== undefined)
    .map(
      (rail): Loop => ({
        name: `prove-sent ${rail.network.caip2}`,
        restMs: 1_000,
        wakeOn: 'decisions',
        run: () => proveSent(ctx, rail),
      }),
    )
  return [measure, ...proofs, ...rails.flatMap((rail) => rail.settle(work))]
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
      ctx.log.error({ task: loop.name, err: error }, 'background task failed; retrying in 1 s')
    }
    if (restMs === 0 || (isWoken && restMs !== failureRestMs)) continue
    const rested = new AbortController()
    wake = () => rested.abort()
    await wait(restMs, undefined, { signal: AbortSignal.any([stopping, rested.signal]) }).catch(() => {})
  }
  unlisten()
  await loop
    .release?.()
    .catch((error) =>
      ctx.log.warn({ task: loop.name, err: error }, 'could not release a lease; it expires by itself'),
    )
}
