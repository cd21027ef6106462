import type { Database, Transaction } from '../database/db.ts'
import type { MemberId, StoreId } from '../ids.ts'
import type { Role } from './member.ts'

/** Rows of earlier days that one sign-up clears away, so that the table does not grow. */
const clearedAtOnce = 100

const today = "(clock() at time zone 'utc')::date"

/** Whether as many have signed up from this block today. */
export async function isBlockFull(db: Database, block: string, max: number): Promise<boolean> {
  const rows = await db.query(
    `select 1 as found from sign_ups where day = ${today} and block = $1 and count >= $2`,
    [block, max],
  )
  return rows.length > 0
}

/** Counts one more from this block, unless it is full. The row's lock lets one happen at a time. */
export async function countSignUp(tx: Transaction, block: string, max: number): Promise<boolean> {
  const rows = await tx.query(
    `with over as (
       delete from sign_ups where ctid = any (array(
         select ctid from sign_ups where day < ${today} limit $3 for update skip locked))
     )
     insert into sign_ups as s (day, block, count) values (${today}, $1, 1)
     on conflict (day, block) do update set count = s.count + 1 where s.count < $2
     returning count`,
    [block, max, clearedAtOnce],
  )
  return rows.length > 0
}

export async function insertMember(
  tx: Transaction,
  member: { readonly id: MemberId; readonly name: string },
  now: Date,
): Promise<void> {
  await tx.query('insert into members (id, name, created_at) values ($1, $2, $3)', [
    member.id,
    member.name,
    now,
  ])
}

export async function insertMembership(
  tx: Transaction,
  storeId: StoreId,
  memberId: MemberId,
  role: Role,
  now: Date,
): Promise<void> {
  await tx.query('insert into memberships (store_id, member_id, role, created_at) values ($1, $2, $3, $4)', [
    storeId,
    memberId,
    role,
    now,
  ])
}
