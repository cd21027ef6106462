import type { Database, Transaction } from '../database/db.ts'
import type { MemberId, PasskeyId } from '../ids.ts'
import type { Passkey } from './member.ts'
import type { NewPasskey } from './rows.ts'

type Reader = Database | Transaction

type PasskeyRow = {
  id: PasskeyId
  credential_id: string
  member_id: MemberId
  public_key: Buffer
  counter: string
  transports: string[]
  name: string
  created_at: Date
  last_used_at: Date | null
}

export async function findPasskey(db: Reader, credentialId: string): Promise<Passkey | null> {
  const [row] = await db.query<PasskeyRow>('select * from passkeys where credential_id = $1', [credentialId])
  return row ? toPasskey(row) : null
}

export async function listPasskeys(db: Reader, memberId: MemberId): Promise<Passkey[]> {
  const rows = await db.query<PasskeyRow>('select * from passkeys where member_id = $1 order by id', [
    memberId,
  ])
  return rows.map(toPasskey)
}

export async function insertPasskey(
  tx: Transaction,
  memberId: MemberId,
  passkey: NewPasskey,
  now: Date,
): Promise<boolean> {
  const rows = await tx.query(
    `insert into passkeys (id, credential_id, member_id, public_key, counter, transports, name, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (credential_id) do nothing returning id`,
    [
      passkey.id,
      passkey.credentialId,
      memberId,
      Buffer.from(passkey.publicKey),
      passkey.counter,
      passkey.transports,
      passkey.name,
      now,
    ],
  )
  return rows.length > 0
}

/**
 * Notes that a passkey was used. An authenticator that counts never says the same number twice, so two that do are copies
 * of each other: then nothing is noted, and the answer is false. The row's lock lets one use happen at a time.
 */
export async function advanceCounter(
  tx: Transaction,
  passkeyId: PasskeyId,
  counter: number,
  now: Date,
): Promise<boolean> {
  const rows = await tx.query(
    `update passkeys set counter = $2, last_used_at = $3
     where id = $1 and (counter < $2 or (counter = 0 and $2 = 0)) returning id`,
    [passkeyId, counter, now],
  )
  return rows.length > 0
}

export async function deletePasskey(
  tx: Transaction,
  memberId: MemberId,
  passkeyId: string,
): Promise<boolean> {
  const rows = await tx.query('delete from passkeys where id = $1 and member_id = $2 returning id', [
    passkeyId,
    memberId,
  ])
  return rows.length > 0
}

/** Deletes all passkeys of a member but one; all of them if `kept` is null. */
export async function deleteOtherPasskeys(
  tx: Transaction,
  memberId: MemberId,
  kept: string | null,
): Promise<void> {
  await tx.query('delete from passkeys where member_id = $1 and id is distinct from $2', [memberId, kept])
}

function toPasskey(row: PasskeyRow): Passkey {
  return {
    id: row.id,
    credentialId: row.credential_id,
    memberId: row.member_id,
    publicKey: new Uint8Array(row.public_key),
    counter: Number.parseInt(row.counter, 10),
    transports: row.transports,
    name: row.name,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
  }
}
