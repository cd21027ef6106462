import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { MemberId, StoreId } from '../ids.ts'
import type { MailSubject } from '../mails/mail.ts'
import { countHourly, readHourly } from '../mails/recipients.ts'
import { hasRoom, writeMail } from '../mails/write.ts'
import { knownZone, nextHour, startOfDay } from '../zone.ts'
import { type PaymentMails, roles } from './member.ts'
import {
  addNews,
  type NewsRow,
  newsTypes,
  noSums,
  pathOf,
  pickNews,
  type Sums,
  sentenceOf,
  summaryOf,
} from './payment-news.ts'
import { mayAct } from './rights.ts'
import { chosenMails, isKnown } from './rows.ts'

/**
 * Mails members about the payments of their stores: a mail for each payment, one mail a day, or none, as each member
 * chose.
 *
 * A cursor for each member and store says which events were told. Reading the events, writing the mails and moving the
 * cursor are one transaction that holds the cursor, so neither a crash nor a second process tells a payment twice. The
 * cursor goes with the membership.
 */

/** By this hour of the store's day, its owners are up. The mail is about the time before that day. */
const dailyHour = 8
/**
 * From one store to one address: a busy day of a shop. Above it, one mail says how many payments there were. Nobody checks
 * whose address a member has, so several members with the same address share the hour.
 */
export const mailsPerHour = 20
/** From all stores to one address. Half of it is left for others when one store floods an address. */
const mailsPerHourInAll = 2 * mailsPerHour
const cursorsPerRun = 100
const rowsPerPage = 2_000
/** Bounds one mail to a few seconds of reading; the next mail covers the rest. */
const pagesPerMail = 50
/** A reorganisation repeats the last events of a log. This many are searched for a payment that was told before. */
const lookBack = 5_000n

/** What waits in a store now: payments to decide about, and refunds to sign. */
type ReadWaiting = (
  db: Database,
  storeId: StoreId,
) => Promise<{ readonly decisions: number; readonly refunds: number }>

/** Where the pass over all cursors is. */
export type Pass = { after: { readonly memberId: string; readonly storeId: string } }

export function firstPass(): Pass {
  return { after: { memberId: '', storeId: '' } }
}

/**
 * Returns whether the pass goes on. A pass looks at each cursor once, so no store, however busy, keeps the others from
 * their turn, and there is a rest after each pass. A failure keeps only its own cursor quiet.
 */
export async function mailPayments(
  ctx: Context,
  now: Date,
  readWaiting: ReadWaiting,
  pass: Pass,
): Promise<boolean> {
  await followChoices(ctx.db)
  const found = await listDue(ctx.db, pass)
  for (const due of found) {
    // The pass goes on here once the mail server has taken some.
    if (!(await hasRoom(ctx.db, 'payment'))) return false
    pass.after = due
    try {
      await ctx.db.transaction((tx) => tell(ctx, tx, due, { now, readWaiting }))
    } catch (err) {
      ctx.metrics.taskFailures.inc({ task: 'mail-payments' })
      ctx.log.error({ ...due, err }, 'could not mail a member about payments; trying again in the next hour')
      await keepQuiet(ctx.db, due)
    }
  }
  const isOver = found.length < cursorsPerRun
  if (isOver) pass.after = firstPass().after
  return !isOver
}

type Due = { readonly memberId: MemberId; readonly storeId: StoreId }
type Run = { readonly now: Date; readonly readWaiting: ReadWaiting }

async function tell(ctx: Context, tx: Transaction, due: Due, run: Run): Promise<void> {
  const cursor = await lockCursor(tx, due)
  if (!cursor) return
  if (isUsedUp(await readHourly(ctx, tx, toOf(cursor)))) return await keepQuiet(tx, cursor)
  if (cursor.choice === 'daily') await tellDay(ctx, tx, cursor, run)
  else await tellEach(ctx, tx, cursor, run)
}

const toOf = ({ email, storeId }: Cursor) => ({ address: email, storeId })

function isUsedUp({ ofStore, inAll }: { readonly ofStore: number; readonly inAll: number }): boolean {
  return ofStore > mailsPerHour || inAll > mailsPerHourInAll
}

/** Mails each payment by itself, or all of them in one mail if that would be too many. Then the store’s hour is used up. */
async function tellEach(ctx: Context, tx: Transaction, cursor: Cursor, { now }: Run): Promise<void> {
  const { sums, news, until } = await readNews(tx, cursor, cursor.end)
  if (sums.count === 0) return await moveCursor(tx, cursor, { until })
  const to = toOf(cursor)
  const written = await countHourly(ctx, tx, to, { ofStore: 0, inAll: 0 })
  if (isUsedUp(written)) return await keepQuiet(tx, cursor)
  const left = Math.min(mailsPerHour - written.ofStore, mailsPerHourInAll - written.inAll)
  const isEach = sums.count <= left
  const mails: readonly Letter[] = isEach
    ? news.map((row) => ({
        subject: `A payment to your store (${cursor.storeId})`,
        text: sentenceOf(row),
        path: pathOf(row),
        why: 'You get a mail for each payment, as you chose.',
      }))
    : [
        {
          subject: `Payments to your store (${cursor.storeId})`,
          text: `These came in too quickly for a mail each.\n\n${summaryOf(sums)}`,
          path: 'payments',
          why: `You get a mail for each payment, as you chose, and one for all of them where there are more than ${mailsPerHour} within an hour.`,
        },
      ]
  for (const [place, mail] of mails.entries())
    if (!(await write(ctx, tx, cursor, mail, now))) {
      const told = isEach && news[place] ? BigInt(news[place].sequence) - 1n : cursor.sequence
      await countHourly(ctx, tx, to, { ofStore: place, inAll: place })
      await moveCursor(tx, cursor, { until: told })
      return await keepQuiet(tx, cursor)
    }
  const ofStore = isEach ? mails.length : mailsPerHour + 1 - written.ofStore
  await countHourly(ctx, tx, to, { ofStore, inAll: mails.length })
  await moveCursor(tx, cursor, { until })
}

/** One mail about the time before the store's day, if something happened. */
async function tellDay(
  ctx: Context,
  tx: Transaction,
  cursor: Cursor,
  { now, readWaiting }: Run,
): Promise<void> {
  const zone = knownZone(cursor.zone)
  const end = await findEnd(tx, cursor, startOfDay(now, zone))
  const { sums, until } = await readNews(tx, cursor, end)
  if (sums.count > 0) {
    const to = toOf(cursor)
    if (isUsedUp(await countHourly(ctx, tx, to, { ofStore: 0, inAll: 0 }))) return await keepQuiet(tx, cursor)
    await countHourly(ctx, tx, to, { ofStore: 1, inAll: 1 })
    const db = { ...ctx.db, query: tx.query } satisfies Database
    const { decisions, refunds } = await readWaiting(db, cursor.storeId)
    const needs = [
      ...(decisions > 0
        ? [`${decisions} ${decisions === 1 ? 'payment needs' : 'payments need'} a decision.`]
        : []),
      ...(refunds > 0 ? [`${refunds} ${refunds === 1 ? 'refund waits' : 'refunds wait'} to be signed.`] : []),
    ]
    const mail: Letter = {
      subject: `Payments to your store (${cursor.storeId})`,
      text: `${summaryOf(sums)}\n\n${needs.length > 0 ? needs.join('\n') : 'Nothing waits for you.'}`,
      path: decisions > 0 ? 'inbox' : 'payments',
      why: 'You get this mail once a day, and only if there were payments.',
    }
    if (!(await write(ctx, tx, cursor, mail, now))) return await keepQuiet(tx, cursor)
  }
  const isDone = until === end
  await moveCursor(tx, cursor, { until, ...(isDone && { dailyAt: nextHour(now, zone, dailyHour) }) })
}

type Letter = {
  readonly subject: MailSubject
  readonly text: string
  readonly path: string
  readonly why: string
}

async function write(
  ctx: Context,
  tx: Transaction,
  cursor: Cursor,
  letter: Letter,
  now: Date,
): Promise<boolean> {
  const { consoleUrl } = ctx.config
  const { storeId, storeName, email: to, stopToken } = cursor
  const stopUrl = `${consoleUrl}/stop-mails/${stopToken}`
  const text = `${letter.text}

Store: ${storeName} (${storeId})
Look at it: ${consoleUrl}/stores/${storeId}/${letter.path}

${letter.why} To choose again, open your account: ${consoleUrl}/account
To stop mails about payments of this store: ${stopUrl}
`
  return await writeMail(
    ctx,
    tx,
    { kind: 'payment', storeId },
    { to, subject: letter.subject, text, stopUrl },
    now,
  )
}

/** A member who is mailed about a store, and how far they were told. */
type Cursor = {
  readonly storeId: StoreId
  readonly memberId: MemberId
  readonly choice: PaymentMails
  readonly email: string
  readonly stopToken: string
  readonly storeName: string
  readonly zone: string
  /** The last event that was told. */
  readonly sequence: bigint
  /** The last event of the log. */
  readonly end: bigint
}

/** SQL: memberships `m` of members `p` in stores `s` who are mailed about payments. $1: the roles that may see payments. */
const wanted = `memberships m join members p on p.id = m.member_id and p.email is not null
  join stores s on s.id = m.store_id and ${isKnown} and ${chosenMails} <> 'none' and m.role = any($1)`
const readers = roles.filter((role) => mayAct(role, 'payments:read'))
/**
 * SQL: whether cursor `k` has something to tell, with its membership `m`, its store `s` and the store's counter `c`. What
 * happens while a store is suspended is told once it no longer is.
 */
const isDue = `k.sequence is not null and s.suspended_at is null and (k.quiet_until is null or k.quiet_until <= clock())
  and case ${chosenMails} when 'every' then c.last_sequence > k.sequence else k.daily_at <= clock() end`

/**
 * A member who begins to be mailed is told about what happens from then on. One who wants no more mails, has lost the
 * address or may no longer see payments is not told later what happened meanwhile.
 */
async function followChoices(db: Database): Promise<void> {
  await db.query(
    `insert into payment_mail_cursors (store_id, member_id, daily_at)
     select m.store_id, m.member_id, clock() from ${wanted}
     where not exists (select 1 from payment_mail_cursors k where k.store_id = m.store_id and k.member_id = m.member_id)
     order by 1, 2 on conflict do nothing`,
    [readers],
  )
  await db.query(
    `with wanted as (select m.store_id, m.member_id from ${wanted}), changed as (
       select k.store_id, k.member_id, w.store_id is not null as is_wanted
       from payment_mail_cursors k left join wanted w on w.store_id = k.store_id and w.member_id = k.member_id
       where (w.store_id is not null) <> (k.sequence is not null)
       order by k.member_id, k.store_id for update of k skip locked
     )
     update payment_mail_cursors k set daily_at = clock(), quiet_until = null,
       sequence = case when n.is_wanted then coalesce((select last_sequence from event_counters c
         where c.store_id = k.store_id), 0) end
     from changed n where k.store_id = n.store_id and k.member_id = n.member_id`,
    [readers],
  )
}

/** The cursors that are due, from where the pass is. */
async function listDue(db: Database, { after }: Pass): Promise<Due[]> {
  return await db.query<Due>(
    `select m.member_id as "memberId", m.store_id as "storeId" from ${wanted}
     join payment_mail_cursors k on k.store_id = m.store_id and k.member_id = m.member_id
     join event_counters c on c.store_id = m.store_id
     where ${isDue} and (m.member_id, m.store_id) > ($3, $4) order by m.member_id, m.store_id limit $2`,
    [readers, cursorsPerRun, after.memberId, after.storeId],
  )
}

/** What there is to tell. Null if there is nothing any more, or another process tells it. */
async function lockCursor(tx: Transaction, { memberId, storeId }: Due): Promise<Cursor | null> {
  const [row] = await tx.query<Omit<Cursor, 'sequence' | 'end'> & { sequence: string; end: string }>(
    `select m.store_id as "storeId", m.member_id as "memberId", ${chosenMails} as choice, p.email,
       m.stop_token as "stopToken", s.name as "storeName", s.time_zone as zone, k.sequence::text,
       c.last_sequence::text as "end"
     from ${wanted}
     join payment_mail_cursors k on k.store_id = m.store_id and k.member_id = m.member_id
     join event_counters c on c.store_id = m.store_id
     where m.member_id = $2 and m.store_id = $3 and ${isDue} for update of k skip locked`,
    [readers, memberId, storeId],
  )
  return row ? { ...row, sequence: BigInt(row.sequence), end: BigInt(row.end) } : null
}

/** Nothing is tried until the hour is over: the address has had its mails, or none can be written. */
async function keepQuiet(db: Database | Transaction, { storeId, memberId }: Due): Promise<void> {
  await db.query(
    `update payment_mail_cursors set quiet_until = date_trunc('hour', clock()) + interval '1 hour'
     where store_id = $1 and member_id = $2`,
    [storeId, memberId],
  )
}

async function moveCursor(
  tx: Transaction,
  { storeId, memberId }: Cursor,
  to: { readonly until: bigint; readonly dailyAt?: Date },
): Promise<void> {
  await tx.query(
    `update payment_mail_cursors set sequence = $3, daily_at = coalesce($4, daily_at), quiet_until = null
     where store_id = $1 and member_id = $2`,
    [storeId, memberId, to.until.toString(), to.dailyAt ?? null],
  )
}

/** The last event before the first one of a time. */
async function findEnd(tx: Transaction, { storeId, sequence, end }: Cursor, before: Date): Promise<bigint> {
  const [first] = await tx.query<{ sequence: string }>(
    `select sequence::text from events where store_id = $1 and sequence > $2 and sequence <= $3 and created_at >= $4
     order by events.sequence limit 1`,
    [storeId, sequence.toString(), end.toString(), before],
  )
  return first ? BigInt(first.sequence) - 1n : end
}

/**
 * What the log says about payments after the cursor. `news` has the first ones, `until` says how far they go. A payment
 * that a member accepted adds to the day's sum, but was told by itself when it arrived.
 */
async function readNews(
  tx: Transaction,
  { storeId, sequence, zone, choice }: Cursor,
  end: bigint,
): Promise<{ readonly sums: Sums; readonly news: readonly NewsRow[]; readonly until: bigint }> {
  const sums = noSums()
  const news: NewsRow[] = []
  const seen = new Set<string>()
  let until = sequence
  let isBackRead = false
  for (let page = 0; until < end && page < pagesPerMail; page++) {
    const rows = await listRows(tx, storeId, { after: until, until: end }, rowsPerPage)
    // Most events are not about payments, and looking back is the larger part of the work.
    if (rows.length > 0 && !isBackRead) {
      const after = sequence > lookBack ? sequence - lookBack : 0n
      pickNews(await listRows(tx, storeId, { after, until: sequence }, Number.MAX_SAFE_INTEGER), seen)
      isBackRead = true
    }
    const picked = pickNews(rows, seen).filter(({ isAccepted }) => choice === 'daily' || !isAccepted)
    addNews(sums, picked, knownZone(zone))
    news.push(...picked.slice(0, mailsPerHour - news.length))
    const last = rows.at(-1)
    until = last && rows.length === rowsPerPage ? BigInt(last.sequence) : end
  }
  return { sums, news, until }
}

async function listRows(
  tx: Transaction,
  storeId: StoreId,
  { after, until }: { readonly after: bigint; readonly until: bigint },
  limit: number,
): Promise<NewsRow[]> {
  return await tx.query<NewsRow>(
    `select e.sequence::text, e.type, e.created_at as at, e.checkout_id as "checkoutId",
       e.data #>> '{payment,id}' as "paymentId", e.data #>> '{checkout,orderId}' as "orderId",
       e.data #>> '{checkout,priceAmount}' as "priceAmount", e.data #>> '{checkout,priceCurrency}' as "priceCurrency",
       e.data #>> '{payment,network}' as network, e.data #>> '{payment,asset}' as asset,
       e.data #>> '{payment,amount}' as amount,
       e.type = 'checkout.completed' and exists (select 1 from credits k where k.checkout_id = e.checkout_id
         and k.orphaned_at is null and k.accepted_at is not null) as "isAccepted"
     from events e where e.store_id = $1 and e.sequence > $2 and e.sequence <= $3 and e.type = any($4)
     order by e.sequence limit $5`,
    [storeId, after.toString(), until.toString(), newsTypes, limit],
  )
}
