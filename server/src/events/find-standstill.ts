import type { Context } from '../context.ts'
import { listCountersBehind, measureUnnumbered } from './rows.ts'

/** Numbering takes a tenth of a second. */
const unnumberedMsMax = 60_000
/** Counting more would say nothing else. */
const countMax = 10_000
/** Enough to see what is wrong. */
const storesMax = 5

/** What keeps events from being numbered, and what to do about it. Until then stores neither see nor receive them. */
export async function findStandstill(
  ctx: Context,
): Promise<readonly { readonly says: string; readonly fix: string }[]> {
  const [counters, { count, oldestAt }] = await Promise.all([
    listCountersBehind(ctx.db, storesMax),
    measureUnnumbered(ctx.db, countMax),
  ])
  const wrong = counters.map(({ storeId, last, highest }) => ({
    says: `the counter of ${storeId} is ${last}, but its log has event ${highest}: its events cannot be numbered`,
    fix: 'Set the counter to the highest number: docs/runbook.md#farthingeventlogheld says how.',
  }))
  const waitedMs = oldestAt === null ? 0 : ctx.now().getTime() - oldestAt.getTime()
  if (wrong.length > 0 || waitedMs <= unnumberedMsMax) return wrong
  return [
    {
      says: `${count === 1 ? '1 event has' : `${count} events have`} no number yet, the oldest for ${Math.floor(waitedMs / 1_000)} seconds`,
      fix: 'Check that work is running. If its log says that events cannot be numbered, see docs/runbook.md#farthingeventlogheld.',
    },
  ]
}
