import { bounds, noFigures, takenKey } from '../server/src/checkouts/rollups/rollup.ts'
import type { Database } from '../server/src/database/db.ts'
import { filled } from './fill-functions.ts'

/** Writes the figures that `work` would have counted from the events, in UTC, so that it finds nothing to count. */
export async function fillRollups(db: Database): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.script(`
      set local statement_timeout = 0;
      set local work_mem = '256MB';
      insert into rollup_cursors (store_id, sequence, time_zone) select c.store_id, c.last_sequence, 'UTC'
        from event_counters c join fill.stores s on s.id = c.store_id;
      insert into rollup_quarters (store_id, starts_at, figures) select store_id, fill.at(span * 900000), figures
        from (${sums(900_000)}) s order by span, store_id;
      insert into rollup_days (store_id, day, figures) select store_id, (fill.at(span * 86400000) at time zone 'UTC')::date, figures
        from (${sums(86_400_000)}) s order by span, store_id;
    `)
  })
}

/** SQL: the figures of every store for each span of `ms` milliseconds. */
function sums(ms: number): string {
  const key = takenKey(filled.network, filled.shownAsset, 'USD')
  return `with made as (
      select store_id, created_ms / ${ms} as span, count(*) as made, count(*) filter (where kind = 'paid') as paid,
        count(*) filter (where kind = 'canceled') as canceled,
        count(*) filter (where kind not in ('open', 'paid', 'canceled')) as expired
      from fill.facts group by 1, 2
    ), timed as (
      select store_id, included_ms / ${ms} as span,
        width_bucket(included_ms - created_ms, array[${bounds.join(',')}]::bigint[]) as bucket, count(*) as payments,
        sum(units) as received, sum(price::numeric * 1000000)::bigint as priced
      from fill.facts where kind = 'paid' group by 1, 2, 3
    ), paid as (
      select store_id, span, jsonb_object_agg(bucket, payments) as times, jsonb_build_object('${key}', jsonb_build_object(
        'payments', sum(payments), 'received', sum(received)::text, 'priced', sum(priced)::text)) as taken
      from timed group by 1, 2
    )
    select coalesce(m.store_id, p.store_id) as store_id, coalesce(m.span, p.span) as span,
      '${JSON.stringify(noFigures)}'::jsonb || jsonb_strip_nulls(jsonb_build_object('made', m.made, 'paid', m.paid,
        'expired', m.expired, 'canceled', m.canceled, 'taken', p.taken, 'times', p.times)) as figures
    from made m full join paid p on p.store_id = m.store_id and p.span = m.span`
}
