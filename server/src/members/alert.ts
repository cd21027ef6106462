import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import type { MailSubject } from '../mails/mail.ts'
import { writeMail } from '../mails/write.ts'
import type { AlertKind } from './member.ts'
import { undecidedTypes } from './payment-news.ts'
import { isKnown } from './rows.ts'

/**
 * Mails a store's owners about payments that completed no checkout and webhooks that do not arrive. The console shows
 * the same; a mail is for owners who are not looking.
 *
 * A cursor in the store's event log says what was mailed. Reading the events, writing the mails and moving the cursor
 * are one transaction, so a crash neither repeats nor skips an alert. Owners get at most one mail of a kind per hour,
 * which sums up the time since the last. Events from before the store had an owner with an address are not mailed.
 */
const quietHours = 1
/** A receiver that is being restarted is back by then. */
const failingMinutes = 15
const storesPerRun = 100
/** Bounds one run; the next mail covers the rest. */
const eventsPerStore = 20_000

type Alert = {
  readonly kind: AlertKind
  readonly subject: MailSubject
  readonly text: string
  readonly path: string
}

/** Returns whether there may be more. */
export async function mailAlerts(ctx: Context, now: Date): Promise<boolean> {
  const waiting = await storesWithNews(ctx.db)
  for (const storeId of waiting) await mailStore(ctx, storeId, now)
  return waiting.length === storesPerRun
}

async function mailStore(ctx: Context, storeId: StoreId, now: Date): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const news = await lockNews(tx, storeId)
    if (!news) return
    const { storeName, money, undelivered, failing } = news
    const sentences: readonly Alert[] = [
      ...(money > 0
        ? [
            {
              kind: 'money' as const,
              subject: `Payments to your store need a decision (${storeId})` as const,
              text: `${count(money, 'payment')} completed no checkout: late, short, too much or unexpected`,
              path: 'inbox',
            },
          ]
        : []),
      ...(failing.length > 0 || undelivered > 0
        ? [
            {
              kind: 'webhooks' as const,
              subject: `Webhooks of your store do not arrive (${storeId})` as const,
              text: describeWebhooks(failing, undelivered),
              path: 'developers',
            },
          ]
        : []),
    ]
    let isMailed = false
    for (const { kind, subject, text, path } of sentences)
      for (const to of await listAddresses(tx, storeId, kind)) {
        const mail = { to, subject, text: letter(ctx, storeId, storeName, text, path) }
        isMailed = (await writeMail(ctx, tx, { kind: 'alert', storeId }, mail, now)) || isMailed
      }
    await tx.query(
      `update alert_cursors set sequence = $2, failing_until = $3, told_at = case when $4 then clock() else told_at end
       where store_id = $1`,
      [storeId, news.until, news.failingUntil, isMailed],
    )
  })
}

function describeWebhooks(failing: readonly string[], undelivered: number): string {
  const hosts = failing.map((url) => new URL(url).host).join(', ')
  const silent = failing.length > 0 ? [`${hosts} has not taken webhooks for ${failingMinutes} minutes`] : []
  const lost = undelivered > 0 ? [`${count(undelivered, 'event')} could not be delivered`] : []
  return [...silent, ...lost].join('; ')
}

function letter(
  { config }: Context,
  storeId: StoreId,
  storeName: string,
  text: string,
  path: string,
): string {
  return `${text}.

Store: ${storeName} (${storeId})
Look at it: ${config.consoleUrl}/stores/${storeId}/${path}

You get this mail because you are an owner of the store, at most once per hour. To stop mails of this kind, open your account: ${config.consoleUrl}/account
`
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

/** News of a store since the last mail. */
type StoreNews = {
  readonly storeName: string
  readonly until: string
  /** As text: a Date would lose the microseconds, and the endpoint would be mailed about again. */
  readonly failingUntil: string
  /** Payments that need a decision. */
  readonly money: number
  /** Events that were given up on, and endpoints that were disabled. */
  readonly undelivered: number
  /** The URLs of endpoints that have been failing for a while. */
  readonly failing: readonly string[]
}

const webhookTypes = "'{webhook_endpoint.disabled,webhook_endpoint.undelivered}'::text[]"

/**
 * Stores to look at: an owner has an address, the log has grown or an endpoint began to fail since the last mail, and
 * that mail is older than the quiet hours. A store without a cursor gets one first, at the end of its log.
 */
async function storesWithNews(db: Database): Promise<StoreId[]> {
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
    [quietHours, failingMinutes, storesPerRun],
  )
  return found.map(({ store_id }) => store_id)
}

/** The news, and how far it goes. Null if another process has the store. */
async function lockNews(tx: Transaction, storeId: StoreId): Promise<StoreNews | null> {
  const [cursor] = await tx.query<{ name: string; after: string; until: string; failing_until: string }>(
    `select s.name, a.sequence::text as after, least(c.last_sequence, a.sequence + $2)::text as until,
       a.failing_until::text
     from alert_cursors a join stores s on s.id = a.store_id join event_counters c on c.store_id = a.store_id
     where a.store_id = $1 for update of a skip locked`,
    [storeId, eventsPerStore],
  )
  if (!cursor) return null
  const { name, after, until, failing_until } = cursor
  const [counts = { money: 0, undelivered: 0 }] = await tx.query<{ money: number; undelivered: number }>(
    `select (count(*) filter (where type = any($4)))::integer as money,
       (count(*) filter (where type = any(${webhookTypes})))::integer as undelivered
     from events where store_id = $1 and sequence > $2 and sequence <= $3`,
    [storeId, after, until, undecidedTypes],
  )
  const failing = await tx.query<{ url: string; failing_since: string }>(
    `select url, failing_since::text from webhook_endpoints
     where store_id = $1 and deleted_at is null and disabled_at is null and failing_since > $2
       and failing_since <= clock() - make_interval(mins => $3) order by webhook_endpoints.failing_since`,
    [storeId, failing_until, failingMinutes],
  )
  return {
    ...counts,
    storeName: name,
    until,
    failingUntil: failing.at(-1)?.failing_since ?? failing_until,
    failing: failing.map(({ url }) => url),
  }
}

/** The addresses of owners who want mails of this kind. */
async function listAddresses(tx: Transaction, storeId: StoreId, kind: AlertKind): Promise<string[]> {
  const found = await tx.query<{ email: string }>(
    `select distinct p.email from memberships m join members p on p.id = m.member_id
     join stores s on s.id = m.store_id and ${isKnown}
     where m.store_id = $1 and m.role = 'owner' and p.email is not null and $2 <> all(m.muted_alerts) order by p.email`,
    [storeId, kind],
  )
  return found.map(({ email }) => email)
}
