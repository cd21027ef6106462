import type { Database, Transaction } from '../database/db.ts'
import type { MemberId } from '../ids.ts'

/** False if somebody has connected this account before. */
export async function insertIdentity(
  tx: Transaction,
  issuer: string,
  subject: string,
  memberId: MemberId,
  now: Date,
): Promise<boolean> {
  const rows = await tx.query(
    `insert into identities (issuer, subject, member_id, created_at) values ($1, $2, $3, $4)
     on conflict do nothing returning subject`,
    [issuer, subject, memberId, now],
  )
  return rows.length > 0
}

/** Whose account this is. */
export async function lockIdentity(
  tx: Transaction,
  issuer: string,
  subject: string,
): Promise<MemberId | null> {
  const [row] = await tx.query<{ member_id: MemberId }>(
    'select member_id from identities where issuer = $1 and subject = $2 for share',
    [issuer, subject],
  )
  return row?.member_id ?? null
}

export async function hasIdentity(db: Database, memberId: MemberId): Promise<boolean> {
  return (await db.query('select 1 as one from identities where member_id = $1', [memberId])).length > 0
}

export async function deleteIdentities(tx: Transaction, memberId: MemberId): Promise<void> {
  await tx.query('delete from identities where member_id = $1', [memberId])
}
