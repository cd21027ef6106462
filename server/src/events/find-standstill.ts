import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { measureUnnumbered } from './rows.ts'

/** Numbering takes a tenth of a second. */
const unnumberedMsMax = 60_000
/** A higher count would not change what to do. */
const countMax = 10_000
/** Enough to see what is wrong. */
const storesMax = 5

/**
 * Finds what keeps events from being numbered, and says what to do about it. Stores neither see nor receive an event before
 * it has its number.
 */
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

/** Stores whose counter is behind the numbers that their events have: the next number would be given twice. */
async function listCountersBehind(
  db: Database,
  limit: number,
): Promise<{ readonly storeId: StoreId; readonly last: bigint; readonly highest: bigint }[]> {
  const rows = await db.query<{ store_id: StoreId; last_sequence: string; highest: string }>(
    `select c.store_id, c.last_sequence, e.highest from event_counters c
     cross join lateral (select greatest(
       (select max(sequence) from events where store_id = c.store_id),
       (select last_sequence from truncated_logs where store_id = c.store_id)) as highest) e
     where e.highest > c.last_sequence order by c.store_id limit $1`,
    [limit],
  )
  return rows.map((row) => ({
    storeId: row.store_id,
    last: BigInt(row.last_sequence),
    highest: BigInt(row.highest),
  }))
}
