import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import type { NodeLimits } from './rpc.ts'

/** Long enough to compare today with yesterday. */
const keptHours = 48

/** One process's counts for a provider's nodes since its last record. `network` is the network's id. */
export type NodeRecord = {
  readonly network: string
  readonly provider: string
  readonly answered: number
  readonly failed: number
}

/** The limits that a provider's nodes have shown. `network` is the network's id. */
export type LimitsRecord = NodeLimits & { readonly network: string }

/** An unchanged limit is recorded again only after this long. */
const sameLimitsMs = 3_600_000

type Seen = Readonly<Record<'answered' | 'failed', number>>

/**
 * Records what this process counted and learned about providers, so that every process can show it. Metrics count from
 * the start of the process, so each run adds only the difference to the run before.
 */
export function openNodeRecorder(
  ctx: Context,
  listLimits: () => readonly LimitsRecord[],
): () => Promise<void> {
  const { db, metrics } = ctx
  const written = new Map<string, Seen>()
  const found = new Map<string, number>()
  return async () => {
    const at = ctx.now().getTime()
    for (const [text, writtenAt] of found) if (writtenAt < at - sameLimitsMs) found.delete(text)
    for (const limits of listLimits()) {
      const { perSecond } = limits
      const rounded = { ...limits, perSecond: perSecond && Math.floor(perSecond) }
      const text = JSON.stringify(rounded)
      if (!found.has(text)) await writeLimits(db, rounded)
      found.set(text, found.get(text) ?? at)
    }
    const now = new Map<string, NodeRecord>()
    for (const [field, counter] of [
      ['answered', metrics.nodeAnswers],
      ['failed', metrics.nodeFailures],
    ] as const) {
      for (const { labels, value } of (await counter.get()).values) {
        const { network = '', provider = '' } = labels
        const key = `${network} ${provider}`
        now.set(key, {
          ...(now.get(key) ?? { network: `${network}`, provider: `${provider}`, answered: 0, failed: 0 }),
          [field]: value,
        })
      }
    }
    const news = [...now].flatMap(([key, record]) => {
      const before = written.get(key) ?? { answered: 0, failed: 0 }
      const [answered, failed] = [record.answered - before.answered, record.failed - before.failed]
      return answered + failed > 0 ? { ...record, answered, failed } : []
    })
    if (news.length === 0) return
    await addNodeRecords(db, news)
    for (const [key, record] of now) written.set(key, record)
  }
}

/** Adds a process's counts to the current hour, and deletes hours older than `keptHours`. */
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

/** The counts of all processes in the last 24 hours. */
export async function listNodeRecords(db: Database): Promise<NodeRecord[]> {
  return await db.query<NodeRecord>(
    `select network, provider, sum(answered)::float8 as answered, sum(failed)::float8 as failed
     from node_hours where hour > clock() - interval '24 hours' group by network, provider order by network, provider`,
  )
}

async function writeLimits(db: Database, limits: LimitsRecord): Promise<void> {
  const { network, provider, calls, blocksMax, perSecond } = limits
  await db.query(
    `insert into node_limits (network, provider, calls, blocks_max, per_second, found_at)
     values ($1, $2, $3, $4, $5, clock())
     on conflict (network, provider) do update set calls = $3, blocks_max = $4, per_second = $5, found_at = clock()`,
    [network, provider, JSON.stringify(calls), blocksMax, perSecond],
  )
}

/** The limits that all processes have found within a day. */
export async function listLimitsRecords(db: Database): Promise<LimitsRecord[]> {
  return await db.query<LimitsRecord>(
    `select network, provider, calls, blocks_max as "blocksMax", per_second as "perSecond"
     from node_limits where found_at > clock() - interval '24 hours' order by network, provider`,
  )
}
