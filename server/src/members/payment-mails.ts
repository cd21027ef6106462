import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { MemberId, StoreId } from '../ids.ts'
import type { MailSubject } from '../mails/mail.ts'
import { writeMail } from '../mails/write.ts'
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
 * cursor are one transaction that holds all cursors of the member, so neither a crash nor a second process tells a
 * payment twice. The cursor goes with the membership.
 */

/** By this hour of the store's day, its owners are up. The mail is about the time before that day. */
const dailyHour = 8
/** A busy day of a shop. Above it, one mail says how many payments there were. */
export const mailsPerHour = 20
/** How long nothing is tried after a mail could not be written. */
const quietMinutes = 60
const membersPerRun = 100
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

/** Returns whether there may be more. */
export async function mailPayments(ctx: Context, now: Date, readWaiting: ReadWaiting): Promise<boolean> {
  await followChoices(ctx.db)
  const found = await membersWithNews(ctx.db)
  for (const memberId of found)
    await ctx.db.transaction((tx) => mailMember(ctx, tx, { memberId, now, readWaiting }))
  return found.length === membersPerRun
}

type Run = { readonly memberId: MemberId; readonly now: Date; readonly readWaiting: ReadWaiting }

async function mailMember(ctx: Context, tx: Transaction, run: Run): Promise<void> {
  await tx.query('select 1 from payment_mail_cursors where member_id = $1 order by store_id for update', [
    run.memberId,
  ])
  for (const cursor of await readCursors(tx, run.memberId)) {
    if (cursor.choice === 'daily') await tellDay(ctx, tx, cursor, run)
    else await tellEach(ctx, tx, cursor, run)
  }
}

/** Mails each payment by itself, or all of them in one mail if that would be too many. Then the hour is used up. */
async function tellEach(
  ctx: Context,
  tx: Transaction,
  cursor: Cursor,
  { memberId, now }: Run,
): Promise<void> {
  const written = await countHour(tx, memberId)
  // Another store of the member has used up the hour meanwhile.
  if (written > mailsPerHour) return
  const { sums, news, until } = await readNews(tx, cursor, cursor.end)
  const isEach = written + sums.count <= mailsPerHour
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
      await moveCursor(tx, cursor, { until: told, mails: place, quietMinutes })
      return
    }
  await moveCursor(tx, cursor, { until, mails: isEach ? mails.length : mailsPerHour + 1 })
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
    if (!(await write(ctx, tx, cursor, mail, now))) {
      await moveCursor(tx, cursor, { until: cursor.sequence, quietMinutes })
      return
    }
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
/** SQL: whether cursor `k` has something to tell, with its membership `m` and its store's counter `c`. */
const isDue = `k.sequence is not null and (k.quiet_until is null or k.quiet_until <= clock())
  and case ${chosenMails} when 'every' then c.last_sequence > k.sequence else k.daily_at <= clock() end`

/**
 * A member who begins to be mailed is told about what happens from then on. One who wants no more mails, has lost the
 * address or may no longer see payments is not told later what happened meanwhile.
 */
async function followChoices(db: Database): Promise<void> {
  await db.query(
    `insert into payment_mail_cursors (store_id, member_id, daily_at, hour, mails)
     select m.store_id, m.member_id, clock(), clock(), 0 from ${wanted}
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

async function membersWithNews(db: Database): Promise<MemberId[]> {
  const found = await db.query<{ member_id: MemberId }>(
    `select distinct m.member_id from ${wanted}
     join payment_mail_cursors k on k.store_id = m.store_id and k.member_id = m.member_id
     join event_counters c on c.store_id = m.store_id
     where ${isDue} order by m.member_id limit $2`,
    [readers, membersPerRun],
  )
  return found.map(({ member_id }) => member_id)
}

/** What there is to tell a member, whose cursors are locked. */
async function readCursors(tx: Transaction, memberId: MemberId): Promise<Cursor[]> {
  const rows = await tx.query<Omit<Cursor, 'sequence' | 'end'> & { sequence: string; end: string }>(
    `select m.store_id as "storeId", m.member_id as "memberId", ${chosenMails} as choice, p.email,
       m.stop_token as "stopToken", s.name as "storeName", s.time_zone as zone, k.sequence::text,
       c.last_sequence::text as "end"
     from ${wanted}
     join payment_mail_cursors k on k.store_id = m.store_id and k.member_id = m.member_id
     join event_counters c on c.store_id = m.store_id
     where m.member_id = $2 and ${isDue} order by m.store_id`,
    [readers, memberId],
  )
  return rows.map((row) => ({ ...row, sequence: BigInt(row.sequence), end: BigInt(row.end) }))
}

/** How many mails about single payments the member got in this hour. */
async function countHour(tx: Transaction, memberId: MemberId): Promise<number> {
  const [row] = await tx.query<{ mails: number }>(
    `select coalesce(sum(mails), 0)::integer as mails from payment_mail_cursors
     where member_id = $1 and hour = date_trunc('hour', clock())`,
    [memberId],
  )
  return row?.mails ?? 0
}

async function moveCursor(
  tx: Transaction,
  { storeId, memberId }: Cursor,
  to: {
    readonly until: bigint
    readonly mails?: number
    readonly quietMinutes?: number
    readonly dailyAt?: Date
  },
): Promise<void> {
  await tx.query(
    `update payment_mail_cursors set sequence = $3, hour = date_trunc('hour', clock()),
       mails = $4 + case when hour = date_trunc('hour', clock()) then mails else 0 end,
       daily_at = coalesce($5, daily_at),
       quiet_until = case when $6::integer is not null then clock() + make_interval(mins => $6) end
     where store_id = $1 and member_id = $2`,
    [storeId, memberId, to.until.toString(), to.mails ?? 0, to.dailyAt ?? null, to.quietMinutes ?? null],
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
  const back = sequence > lookBack ? sequence - lookBack : 0n
  pickNews(await listRows(tx, storeId, { after: back, until: sequence }, Number.MAX_SAFE_INTEGER), seen)
  let until = sequence
  for (let page = 0; until < end && page < pagesPerMail; page++) {
    const rows = await listRows(tx, storeId, { after: until, until: end }, rowsPerPage)
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
