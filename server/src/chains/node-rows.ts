import type { Database } from '../database/db.ts'

/** Long enough to compare today with yesterday. */
const keptHours = 48

/** What one process saw of a provider's nodes since it last said so. `network` is its id. */
export type NodeRecord = {
  readonly network: string
  readonly provider: string
  readonly answered: number
  readonly failed: number
}

/** Adds what a process saw to the current hour, and deletes what is too old to matter. */
export async function addNodeRecords(db: Database, records: readonly NodeRecord[]): Promise<void> {
  await db.query(
    `with old as (
       delete from node_hours where hour < clock() - make_interval(hours => $2)
     )
     insert into node_hours as h (network, provider, hour, answered, failed)
     select i.network, i.provider, date_trunc('hour', clock()), i.answered, i.failed
     from json_to_recordset($1) as i (network text, provider text, answered bigint, failed bigint)
     order by i.network, i.provider
     on conflict (network, provider, hour) do update set answered = h.answered + excluded.answered,
       failed = h.failed + excluded.failed`,
    [JSON.stringify(records), keptHours],
  )
}

/** What all processes saw in the last 24 hours. */
export async function listNodeRecords(db: Database): Promise<NodeRecord[]> {
  return await db.query<NodeRecord>(
    `select network, provider, sum(answered)::float8 as answered, sum(failed)::float8 as failed
     from node_hours where hour > clock() - interval '24 hours' group by network, provider order by network, provider`,
  )
}
