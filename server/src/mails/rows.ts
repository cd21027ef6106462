import type { Database, Transaction } from '../database/db.ts'
import type { MemberId, StoreId } from '../ids.ts'
import type { MailKind, WaitingMail } from './mail.ts'

type MailRow = { id: string; about: string; key_id: string; sealed: string; tries: number }

/** Counts one more mail of this kind that a store causes today, unless there were so many. */
export async function countMail(
  tx: Transaction,
  storeId: StoreId,
  kind: MailKind,
  max: number,
): Promise<boolean> {
  const rows = await tx.query(
    `insert into mail_counts as c (store_id, kind, day, count) values ($1, $2, (clock() at time zone 'utc')::date, 1)
     on conflict (store_id, kind) do update set day = excluded.day,
       count = case when c.day = excluded.day then c.count + 1 else 1 end
     where c.day <> excluded.day or c.count < $3
     returning count`,
    [storeId, kind, max],
  )
  return rows.length > 0
}

/** Counts one more link today for each of these members, unless one of them had so many. */
export async function countMembersMail(
  tx: Transaction,
  memberIds: readonly MemberId[],
  max: number,
): Promise<boolean> {
  const rows = await tx.query(
    `insert into member_mail_counts as c (member_id, day, count)
     select id, (clock() at time zone 'utc')::date, 1 from unnest($1::text[]) id order by id
     on conflict (member_id) do update set day = excluded.day,
       count = case when c.day = excluded.day then c.count + 1 else 1 end
     where c.day <> excluded.day or c.count < $2
     returning count`,
    [memberIds, max],
  )
  return rows.length === memberIds.length
}

/** False if so many are waiting already; null takes it in any case. */
export async function insertMail(
  tx: Transaction,
  mail: Omit<WaitingMail, 'tries'>,
  waitingMax: number | null,
  now: Date,
): Promise<boolean> {
  const rows = await tx.query(
    `insert into mails (id, about, key_id, sealed, due_at, created_at)
     select $1, $2, $3, $4, clock(), $5
     where $6::integer is null or (select count(*) from (select 1 from mails limit $6) waiting) < $6
     returning id`,
    [mail.id, mail.about, mail.keyId, mail.sealed, now, waitingMax],
  )
  return rows.length > 0
}

/**
 * Takes the mail that has been due longest. It is due again after a while that doubles with each try, so a process that
 * dies while it sends leaves it to another.
 */
export async function takeMail(db: Database, firstWaitSeconds: number): Promise<WaitingMail | null> {
  const [row] = await db.query<MailRow>(
    `update mails set tries = tries + 1, due_at = clock() + make_interval(secs => $1 * power(2, tries))
     where id = (select id from mails where due_at <= clock() order by due_at limit 1 for update skip locked)
     returning id, about, key_id, sealed, tries`,
    [firstWaitSeconds],
  )
  return row ? toMail(row) : null
}

export async function deleteMail(db: Database, id: string): Promise<void> {
  await db.query('delete from mails where id = $1', [id])
}

/** Mails that another key has sealed. */
export async function listSealedOtherwise(
  db: Database,
  keyId: string,
  limit: number,
): Promise<WaitingMail[]> {
  const rows = await db.query<MailRow>(
    'select id, about, key_id, sealed, tries from mails where key_id <> $1 order by id limit $2',
    [keyId, limit],
  )
  return rows.map(toMail)
}

export async function replaceSealed(
  db: Database,
  id: string,
  { keyId, sealed }: Pick<WaitingMail, 'keyId' | 'sealed'>,
): Promise<void> {
  await db.query('update mails set key_id = $2, sealed = $3 where id = $1', [id, keyId, sealed])
}

function toMail({ key_id, ...row }: MailRow): WaitingMail {
  return { ...row, keyId: key_id }
}

/** Mails that wait to be sent. */
export async function measureMails(
  db: Database,
): Promise<{ readonly count: number; readonly oldestAt: Date | null }> {
  const [row] = await db.query<{ count: number; oldestAt: Date | null }>(
    'select count(*)::integer as count, min(created_at) as "oldestAt" from mails',
  )
  return row ?? { count: 0, oldestAt: null }
}
