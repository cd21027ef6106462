import type { Database, Transaction } from '../database/db.ts'
import type { MemberId, StoreId } from '../ids.ts'
import type { AlertKind } from './member.ts'
import { isKnown } from './rows.ts'

/** What happened in a store since the last mail. */
export type StoreNews = {
  readonly storeName: string
  readonly until: string
  /** As text: a Date would lose the microseconds, and the endpoint would be told again. */
  readonly failingUntil: string
  /** Payments that somebody has to decide about. */
  readonly money: number
  /** Events that were given up, and endpoints that were disabled. */
  readonly undelivered: number
  /** The URLs of endpoints that have been failing for a while. */
  readonly failing: readonly string[]
}

const moneyTypes = "'{payment.late,payment.underpaid,payment.overpaid,payment.unmatched}'::text[]"
const webhookTypes = "'{webhook_endpoint.disabled,webhook_endpoint.undelivered}'::text[]"

/**
 * Stores with an owner who has an address, whose log has grown or whose endpoints began to fail since they were last told,
 * and that were not told within the quiet hours. A store without a cursor gets one first: it begins here.
 */
export async function storesWithNews(
  db: Database,
  asked: { readonly quietHours: number; readonly failingMinutes: number; readonly limit: number },
): Promise<StoreId[]> {
  await db.query(
    `insert into alert_cursors (store_id, sequence, failing_until)
     select distinct on (c.store_id) c.store_id, c.last_sequence, clock() from memberships m
     join members p on p.id = m.member_id and p.email is not null
     join event_counters c on c.store_id = m.store_id
     where m.role = 'owner' and not exists (select 1 from alert_cursors a where a.store_id = m.store_id)
     on conflict do nothing`,
  )
  const found = await db.query<{ store_id: StoreId }>(
    `select a.store_id from alert_cursors a join event_counters c on c.store_id = a.store_id
     where (a.told_at is null or a.told_at < clock() - make_interval(hours => $1))
       and (c.last_sequence > a.sequence or exists (select 1 from webhook_endpoints e where e.store_id = a.store_id
         and e.deleted_at is null and e.disabled_at is null and e.failing_since > a.failing_until
         and e.failing_since <= clock() - make_interval(mins => $2)))
       and exists (select 1 from memberships m join members p on p.id = m.member_id
         where m.store_id = a.store_id and m.role = 'owner' and p.email is not null)
     order by a.store_id limit $3`,
    [asked.quietHours, asked.failingMinutes, asked.limit],
  )
  return found.map(({ store_id }) => store_id)
}

/** What there is to tell, and until when. Null if another process is at it. */
export async function lockNews(
  tx: Transaction,
  storeId: StoreId,
  eventsMax: number,
  failingMinutes: number,
): Promise<StoreNews | null> {
  const [cursor] = await tx.query<{ name: string; after: string; until: string; failing_until: string }>(
    `select s.name, a.sequence::text as after, least(c.last_sequence, a.sequence + $2)::text as until,
       a.failing_until::text
     from alert_cursors a join stores s on s.id = a.store_id join event_counters c on c.store_id = a.store_id
     where a.store_id = $1 for update of a skip locked`,
    [storeId, eventsMax],
  )
  if (!cursor) return null
  const { name, after, until, failing_until } = cursor
  const [told = { money: 0, undelivered: 0 }] = await tx.query<{ money: number; undelivered: number }>(
    `select (count(*) filter (where type = any(${moneyTypes})))::integer as money,
       (count(*) filter (where type = any(${webhookTypes})))::integer as undelivered
     from events where store_id = $1 and sequence > $2 and sequence <= $3`,
    [storeId, after, until],
  )
  const failing = await tx.query<{ url: string; failing_since: string }>(
    `select url, failing_since::text from webhook_endpoints
     where store_id = $1 and deleted_at is null and disabled_at is null and failing_since > $2
       and failing_since <= clock() - make_interval(mins => $3) order by webhook_endpoints.failing_since`,
    [storeId, failing_until, failingMinutes],
  )
  return {
    ...told,
    storeName: name,
    until,
    failingUntil: failing.at(-1)?.failing_since ?? failing_until,
    failing: failing.map(({ url }) => url),
  }
}

/** Where owners who want to hear of this kind are mailed. */
export async function listAddresses(tx: Transaction, storeId: StoreId, kind: AlertKind): Promise<string[]> {
  const found = await tx.query<{ email: string }>(
    `select distinct p.email from memberships m join members p on p.id = m.member_id
     join stores s on s.id = m.store_id and ${isKnown}
     where m.store_id = $1 and m.role = 'owner' and p.email is not null and $2 <> all(m.muted_alerts) order by p.email`,
    [storeId, kind],
  )
  return found.map(({ email }) => email)
}

export async function moveCursor(
  tx: Transaction,
  storeId: StoreId,
  { until, failingUntil }: StoreNews,
  isTold: boolean,
): Promise<void> {
  await tx.query(
    `update alert_cursors set sequence = $2, failing_until = $3, told_at = case when $4 then clock() else told_at end
     where store_id = $1`,
    [storeId, until, failingUntil, isTold],
  )
}

export async function listMuted(
  db: Database,
  memberId: MemberId,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = await db.query<{ store_id: string; muted_alerts: string[] }>(
    "select store_id, muted_alerts from memberships where member_id = $1 and role = 'owner'",
    [memberId],
  )
  return new Map(found.map((row) => [row.store_id, row.muted_alerts]))
}

/** False if they do not own the store. */
export async function writeMuted(
  tx: Transaction,
  storeId: StoreId,
  memberId: MemberId,
  muted: readonly AlertKind[],
): Promise<boolean> {
  const rows = await tx.query(
    `update memberships set muted_alerts = $3
     where store_id = $1 and member_id = $2 and role = 'owner' returning store_id`,
    [storeId, memberId, muted],
  )
  return rows.length > 0
}
