import type { Database, Transaction } from '../database/db.ts'
import type { InvitationId, MemberId, PasskeyId, StoreId } from '../ids.ts'
import type { Invitation, Member, Membership, NewPasskey, Passkey, Role, StoreMember } from './member.ts'

type Reader = Database | Transaction

export type MemberRow = { id: MemberId; name: string; email: string | null; is_operator: boolean }
type StoreMemberRow = {
  id: MemberId
  name: string
  email: string | null
  is_operator: boolean
  role: Role
  created_at: Date
}
export type InvitationRow = {
  id: InvitationId
  store_id: StoreId
  member_id: MemberId
  is_recovery: boolean
  name: string
  email: string | null
  role: Role
  invited_by: MemberId | null
  created_at: Date
  expires_at: Date
}

/** Serialises changes of a store's members. Returns the store's name. */
export async function lockMembers(tx: Transaction, storeId: string): Promise<string | null> {
  const [row] = await tx.query<{ name: string }>('select name from stores where id = $1 for no key update', [
    storeId,
  ])
  return row?.name ?? null
}

/** Serialises changes of a member's passkeys. Returns whether the member is an operator. */
export async function lockMember(tx: Transaction, memberId: MemberId): Promise<boolean> {
  const [row] = await tx.query<{ is_operator: boolean }>(
    'select is_operator from members where id = $1 for no key update',
    [memberId],
  )
  return row?.is_operator ?? false
}

export async function listStoreMembers(db: Reader, storeId: string): Promise<StoreMember[]> {
  const rows = await db.query<StoreMemberRow>(
    `select m.id, m.name, m.email, m.is_operator, s.role, s.created_at
     from memberships s join members m on m.id = s.member_id where s.store_id = $1 order by m.id`,
    [storeId],
  )
  return rows.map(({ created_at, is_operator, ...rest }) => ({
    ...rest,
    isOperator: is_operator,
    createdAt: created_at,
  }))
}

/**
 * SQL: an operator opened or approved the store, or it has proven a wallet. No operator looks at a stranger's test
 * store.
 */
export const isKnown =
  "(not s.signed_up or s.proven_at is not null or (s.mode = 'live' and s.admission = 'approved'))"

export async function listMemberships(db: Reader, memberId: MemberId): Promise<Membership[]> {
  const rows = await db.query<Omit<Membership, 'sequence'> & { sequence: string }>(
    `select s.id as "storeId", s.name as "storeName", s.mode, s.time_zone as "timeZone", m.role,
       coalesce(c.last_sequence, 0) as sequence
     from memberships m join stores s on s.id = m.store_id left join event_counters c on c.store_id = s.id
     where m.member_id = $1 order by s.id`,
    [memberId],
  )
  return rows.map((row) => ({ ...row, sequence: BigInt(row.sequence) }))
}

export async function insertInvitation(
  tx: Transaction,
  invitation: Invitation,
  tokenHash: Buffer,
): Promise<void> {
  await tx.query(
    `insert into invitations (id, token_hash, store_id, member_id, is_recovery, name, email, role, invited_by,
       created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      invitation.id,
      tokenHash,
      invitation.storeId,
      invitation.memberId,
      invitation.isRecovery,
      invitation.name,
      invitation.email,
      invitation.role,
      invitation.invitedBy,
      invitation.createdAt,
      invitation.expiresAt,
    ],
  )
}

export async function listInvitations(db: Reader, storeId: string): Promise<Invitation[]> {
  const rows = await db.query<InvitationRow>(
    'select * from invitations where store_id = $1 and used_at is null and expires_at > clock() order by id',
    [storeId],
  )
  return rows.map(toInvitation)
}

/** Deletes the open invitations for a member, to any store. */
export async function withdrawFor(tx: Transaction, memberId: MemberId): Promise<void> {
  await tx.query('delete from invitations where member_id = $1 and used_at is null', [memberId])
}

/**
 * Deletes the open invitations that a member made. With a store, only those to it and all links that replace a member's
 * passkeys: such a link opens every store of that member, wherever it was made.
 */
export async function withdrawBy(
  tx: Transaction,
  memberId: MemberId,
  storeId: StoreId | null,
): Promise<void> {
  await tx.query(
    `delete from invitations
     where invited_by = $1 and used_at is null and ($2::text is null or store_id = $2 or is_recovery)`,
    [memberId, storeId],
  )
}

export function toMember(row: MemberRow): Member {
  return { id: row.id, name: row.name, email: row.email, isOperator: row.is_operator }
}

export function toInvitation(row: InvitationRow): Invitation {
  return {
    id: row.id,
    storeId: row.store_id,
    memberId: row.member_id,
    isRecovery: row.is_recovery,
    name: row.name,
    email: row.email,
    role: row.role,
    invitedBy: row.invited_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}

export async function deleteIdentities(tx: Transaction, memberId: MemberId): Promise<void> {
  await tx.query('delete from identities where member_id = $1', [memberId])
}

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

/** Reads a row of the same shape whether or not the passkey exists, so that both take equally long. */
export async function findPasskey(db: Reader, credentialId: string): Promise<Passkey | null> {
  const [row] = await db.query<PasskeyRow & { is_known: boolean }>(
    `select coalesce(p.id, '') as id, $1::text as credential_id, coalesce(p.member_id, '') as member_id,
       coalesce(p.public_key, decode(repeat('00', 77), 'hex')) as public_key, coalesce(p.counter, 0) as counter,
       coalesce(p.transports, '{internal}') as transports, coalesce(p.name, '') as name,
       coalesce(p.created_at, clock()) as created_at, coalesce(p.last_used_at, clock()) as last_used_at,
       p.id is not null as is_known
     from (select 1) always left join passkeys p on p.credential_id = $1`,
    [credentialId],
  )
  const passkey = row ? toPasskey(row) : null
  return row?.is_known ? passkey : null
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

/** Deletes all passkeys of a member except one, or all of them if `kept` is null. */
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
