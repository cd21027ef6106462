import type { Transaction } from '../database/db.ts'
import type { MemberId } from '../ids.ts'
import type { Member } from './member.ts'
import { toMember } from './rows.ts'

/** Adds a place to those of a member, and forgets the oldest beyond `kept`. False if it was there. */
export async function addPlace(
  tx: Transaction,
  memberId: MemberId,
  hash: Buffer,
  kept: number,
): Promise<boolean> {
  const rows = await tx.query(
    `update members set places = (places || $2::bytea)[greatest(1, cardinality(places) + 2 - $3):]
     where id = $1 and $2 <> all (places) returning id`,
    [memberId, hash, kept],
  )
  return rows.length > 0
}

export async function readMember(tx: Transaction, memberId: MemberId): Promise<Member | null> {
  const [row] = await tx.query<Parameters<typeof toMember>[0]>(
    'select id, name, email, is_operator from members where id = $1',
    [memberId],
  )
  return row ? toMember(row) : null
}
