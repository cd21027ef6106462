import { setTimeout as wait } from 'node:timers/promises'
import type { Demand } from '../chains/evm/cadence.ts'
import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import { networks } from '../networks.ts'

/**
 * Nodes are asked often only while somebody may be paying: after somebody looked at a checkout that can be paid, while
 * something is claimed or unsettled, and after a refund was handed out. An open checkout alone is no reason, because
 * some are always abandoned.
 */
const awakeSeconds = 300
const refundSeconds = 600
/** At most one row per network is written within this time, no matter how many people look. */
const writtenEverySeconds = 15

/** When each process last recorded that somebody looked, by network. */
const written = new WeakMap<Context, Map<string, number>>()

/**
 * Records that somebody looks at a checkout that can be paid on these networks. If nobody had looked for a while, wakes
 * `work`, which looks at the chain at once.
 */
export function noteLook(ctx: Context, on: readonly string[]): void {
  void writeLook(ctx, on)
}

async function writeLook(ctx: Context, on: readonly string[]): Promise<void> {
  const times = written.get(ctx) ?? new Map<string, number>()
  written.set(ctx, times)
  const now = ctx.now().getTime()
  const isOld = (network: string) =>
    Math.abs(now - (times.get(network) ?? Number.NEGATIVE_INFINITY)) >= writtenEverySeconds * 1_000
  const due = [...new Set(on)].filter(isOld).toSorted()
  if (due.length === 0) return
  for (const network of due) times.set(network, now)
  try {
    if (await writeLooks(ctx.db, due)) ctx.db.wakeUps.send('claims')
  } catch (error) {
    for (const network of due) times.delete(network)
    ctx.log.warn(
      { err: error },
      'could not record that somebody may pay; until somebody looks again, a transfer sent by hand is found half a minute later',
    )
  }
}

const looks = { times: 40, eachMs: 100 }
/** One wait per network and process, no matter how many requests wait. */
const waking = new WeakMap<Context, Map<string, Promise<void>>>()

/** If the chain was idle, waits a few seconds at most until it was looked at since somebody looked at the checkout. */
export async function untilAwake(ctx: Context, network: string): Promise<void> {
  await writeLook(ctx, [network])
  const waits = waking.get(ctx) ?? new Map<string, Promise<void>>()
  waking.set(ctx, waits)
  const begun = waits.get(network) ?? waitForLook(ctx, network).finally(() => waits.delete(network))
  waits.set(network, begun)
  await begun
}

async function waitForLook({ db }: Context, network: string): Promise<void> {
  for (let i = 0; i < looks.times && (await isWaking(db, network)); i++) await wait(looks.eachMs)
}

async function isWaking(db: Database, network: string): Promise<boolean> {
  const rows = await db.query(
    `select 1 as one from network_looks l join followers f on f.network = l.network
     where l.network = $1 and l.awake_since > f.head_seen_at
       and l.awake_since > clock() - make_interval(secs => $2)`,
    [network, (looks.times * looks.eachMs) / 1_000],
  )
  return rows.length > 0
}

/** True if a network was idle until now. */
async function writeLooks(db: Database, on: readonly string[]): Promise<boolean> {
  const rows = await db.query<{ is_woken: boolean }>(
    `insert into network_looks as l (network, looked_at, awake_since)
     select network, clock(), clock() from unnest($1::text[]) network order by network
     on conflict (network) do update set looked_at = clock(),
       awake_since = case when l.looked_at < clock() - interval '${awakeSeconds} seconds' then clock() else l.awake_since end
       where l.looked_at < clock() - interval '${writtenEverySeconds} seconds' or l.looked_at > clock()
     returning awake_since = looked_at as is_woken`,
    [on],
  )
  return rows.some(({ is_woken }) => is_woken)
}

/** Local nodes cost nothing. */
const local = networks.filter(({ isLocal }) => isLocal).map(({ caip2 }) => `'${caip2}'`)

/** SQL: whether somebody may be paying on a network. */
export const isAwakeOn = (network: string) => `(${network} in (${local.join(', ')})
  or exists (select 1 from network_looks l where l.network = ${network}
    and l.looked_at > clock() - interval '${awakeSeconds} seconds')
  or exists (select 1 from authorizations a where a.network = ${network}
    and a.state in ('claimed', 'sent') and not a.is_credited)
  or exists (select 1 from authorizations a where a.network = ${network} and a.state = 'prepared'
    and a.claimed_at > clock() - interval '${refundSeconds} seconds')
  or exists (select 1 from restores r where r.network = ${network} and r.finished_at is null))`

/** How long it takes at most until a chain is looked at, after somebody looks at a checkout. */
const wakingSeconds = 10

/** SQL: whether the head of a network may be old because nobody needed it until a moment ago. */
export const isIdleOn = (
  network: string,
) => `(not ${isAwakeOn(network)} or (${network} not in (${local.join(', ')})
  and exists (select 1 from network_looks l where l.network = ${network}
    and l.awake_since > clock() - interval '${wakingSeconds} seconds')))`

/** Of more transactions than this in flight, a peek finds one, and the search that follows finds all. */
const sentMax = 4

export async function readDemand(db: Database, network: string): Promise<Demand> {
  const [row] = await db.query<Demand>(
    `select ${isAwakeOn('$1')} as "isAwake",
       (select extract(epoch from clock() - max(t.created_at)) * 1000 from transactions t
        where t.network = $1 and t.mined_at is null)::float8 as "sentAgoMs",
       array(select b.hash from (select t.settler, t.nonce, t.created_at from transactions t
           where t.network = $1 and t.mined_at is null order by t.created_at desc limit $2) t
         cross join lateral (select b.hash from broadcasts b where b.network = $1 and b.settler = t.settler
           and b.nonce = t.nonce order by b.created_at desc limit 1) b order by t.created_at desc) as sent`,
    [network, sentMax],
  )
  return row ?? { isAwake: true, sentAgoMs: null, sent: [] }
}
