import type { Database, Transaction } from '../database/db.ts'
import type { InvitationId, MemberId, StoreId } from '../ids.ts'
import type { Invitation, Member, Membership, Role, StoreMember } from './member.ts'

type Reader = Database | Transaction

type MemberRow = { id: MemberId; name: string; email: string | null; is_operator: boolean }
type StoreMemberRow = {
  id: MemberId
  name: string
  email: string | null
  is_operator: boolean
  role: Role
  created_at: Date
}
type InvitationRow = {
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

/** Lets one change of a store's members happen at a time. Returns the store's name. */
export async function lockMembers(tx: Transaction, storeId: string): Promise<string | null> {
  const [row] = await tx.query<{ name: string }>('select name from stores where id = $1 for no key update', [
    storeId,
  ])
  return row?.name ?? null
}

/** Lets one change of a member's passkeys happen at a time. Returns whether they run the deployment. */
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

/** SQL: an operator opened or approved the store, or it has proven a wallet. Nobody looks at a stranger's test store. */
export const isKnown =
  "(not s.signed_up or s.proven_at is not null or (s.mode = 'live' and s.admission = 'approved'))"

/** Where the store's owners can be written to, and the member whom it is about. */
export async function listOwnerAddresses(
  tx: Transaction,
  storeId: StoreId,
  memberId: MemberId | null,
): Promise<{
  readonly storeName: string
  readonly isKnown: boolean
  readonly addresses: readonly string[]
}> {
  const [row] = await tx.query<{ name: string; is_known: boolean; addresses: string[] }>(
    `select s.name, ${isKnown} as is_known, array(
       select distinct m.email from members m
       where m.email is not null and (m.id = $2 or m.id in (
         select member_id from memberships where store_id = s.id and role = 'owner'))
     ) as addresses
     from stores s where s.id = $1`,
    [storeId, memberId],
  )
  return {
    storeName: row?.name ?? '',
    isKnown: row?.is_known ?? false,
    addresses: row?.addresses ?? [],
  }
}

/**
 * A store's name and owners, and whether its members may have links mailed to addresses that they enter: a live one that
 * is in good standing, and that an operator opened or that has proven a wallet.
 */
export async function readMailing(
  tx: Transaction,
  storeId: StoreId,
): Promise<{ readonly name: string; readonly ownerIds: readonly MemberId[]; readonly mayMail: boolean }> {
  const [row] = await tx.query<{ name: string; owner_ids: MemberId[]; may_mail: boolean }>(
    `select name, array(select member_id from memberships where store_id = s.id and role = 'owner') as owner_ids,
       mode = 'live' and suspended_at is null and (proven_at is not null
         or (not signed_up and admission = 'approved')) as may_mail
     from stores s where id = $1`,
    [storeId],
  )
  return { name: row?.name ?? '', ownerIds: row?.owner_ids ?? [], mayMail: row?.may_mail ?? false }
}

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

/** Notes what an owner has seen of the store's wallets, up to a time that is not in the future. */
export async function noteWalletsSeen(
  db: Reader,
  storeId: StoreId,
  memberId: MemberId,
  until: Date,
): Promise<void> {
  await db.query(
    `update memberships set wallets_seen_at = greatest(wallets_seen_at, least($3, clock()))
     where store_id = $1 and member_id = $2`,
    [storeId, memberId, until],
  )
}

export async function updateRole(
  tx: Transaction,
  storeId: StoreId,
  memberId: MemberId,
  role: Role,
): Promise<void> {
  await tx.query('update memberships set role = $3 where store_id = $1 and member_id = $2', [
    storeId,
    memberId,
    role,
  ])
}

export async function updateOperator(
  tx: Transaction,
  memberId: string,
  isOperator: boolean,
): Promise<Member | null> {
  const [row] = await tx.query<MemberRow>('update members set is_operator = $2 where id = $1 returning *', [
    memberId,
    isOperator,
  ])
  return row ? toMember(row) : null
}

export async function deleteMembership(
  tx: Transaction,
  storeId: StoreId,
  memberId: MemberId,
): Promise<boolean> {
  const rows = await tx.query(
    'delete from memberships where store_id = $1 and member_id = $2 returning store_id',
    [storeId, memberId],
  )
  return rows.length > 0
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

/** An invitation that can still be used. */
export async function readInvitation(
  db: Reader,
  tokenHash: Buffer,
): Promise<(Invitation & { readonly storeName: string }) | null> {
  const [row] = await db.query<InvitationRow & { store_name: string }>(
    `select i.*, s.name as store_name from invitations i join stores s on s.id = i.store_id
     where i.token_hash = $1 and i.used_at is null and i.expires_at > clock()`,
    [tokenHash],
  )
  return row ? { ...toInvitation(row), storeName: row.store_name } : null
}

export async function listInvitations(db: Reader, storeId: string): Promise<Invitation[]> {
  const rows = await db.query<InvitationRow>(
    'select * from invitations where store_id = $1 and used_at is null and expires_at > clock() order by id',
    [storeId],
  )
  return rows.map(toInvitation)
}

/** An operator's open invitations to a store: a later one replaces them. */
export async function withdrawOperators(tx: Transaction, storeId: StoreId): Promise<void> {
  await tx.query('delete from invitations where store_id = $1 and invited_by is null and used_at is null', [
    storeId,
  ])
}

/** The open invitations for a member, of any store. */
export async function withdrawFor(tx: Transaction, memberId: MemberId): Promise<void> {
  await tx.query('delete from invitations where member_id = $1 and used_at is null', [memberId])
}

/**
 * The open invitations that a member made; with a store, only those to it, and all links that replace somebody's
 * passkeys: such a link opens every store of that person, wherever it was made.
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

export async function withdrawOne(
  tx: Transaction,
  storeId: StoreId,
  invitationId: string,
): Promise<Invitation | null> {
  const [row] = await tx.query<InvitationRow>(
    'delete from invitations where id = $1 and store_id = $2 and used_at is null returning *',
    [invitationId, storeId],
  )
  return row ? toInvitation(row) : null
}

export type NewPasskey = {
  readonly id: string
  readonly credentialId: string
  readonly publicKey: Uint8Array
  readonly counter: number
  readonly transports: readonly string[]
  readonly name: string
}

/**
 * Uses an invitation: one statement marks it as used, makes the member (unless it is for one that exists) and stores the
 * passkey. Null if the invitation cannot be used or the passkey is known already: then roll back.
 */
export async function enrolPasskey(
  tx: Transaction,
  tokenHash: Buffer,
  passkey: NewPasskey,
  now: Date,
): Promise<Invitation | null> {
  const [row] = await tx.query<InvitationRow>(
    `with used as (
       update invitations set used_at = $8
       where token_hash = $1 and used_at is null and expires_at > clock()
       returning *
     ), person as (
       insert into members (id, name, email, created_at)
       select member_id, name, email, $8 from used where not is_recovery
     ), joined as (
       insert into memberships (store_id, member_id, role, created_at)
       select store_id, member_id, role, $8 from used where not is_recovery
     ), stored as (
       insert into passkeys (id, credential_id, member_id, public_key, counter, transports, name, created_at)
       select $2, $3, member_id, $4, $5, $6, $7, $8 from used
       on conflict (credential_id) do nothing
       returning member_id
     )
     select used.* from used join stored using (member_id)`,
    [
      tokenHash,
      passkey.id,
      passkey.credentialId,
      Buffer.from(passkey.publicKey),
      passkey.counter,
      passkey.transports,
      passkey.name,
      now,
    ],
  )
  return row ? toInvitation(row) : null
}

/**
 * Uses an invitation for a member who exists, in one statement. Null if it cannot be used, or is for replacing somebody's
 * passkeys; `isNew` is false if they belong to the store already: then roll back.
 */
export async function acceptInvitation(
  tx: Transaction,
  tokenHash: Buffer,
  memberId: MemberId,
  now: Date,
): Promise<{ readonly storeId: StoreId; readonly role: Role; readonly isNew: boolean } | null> {
  const [row] = await tx.query<{ storeId: StoreId; role: Role; isNew: boolean }>(
    `with used as (
       update invitations set used_at = $3
       where token_hash = $1 and used_at is null and expires_at > clock() and not is_recovery
       returning store_id, role
     ), joined as (
       insert into memberships (store_id, member_id, role, created_at)
       select store_id, $2, role, $3 from used
       on conflict do nothing
       returning store_id
     )
     select u.store_id as "storeId", u.role, j.store_id is not null as "isNew"
     from used u left join joined j using (store_id)`,
    [tokenHash, memberId, now],
  )
  return row ?? null
}

export function toMember(row: MemberRow): Member {
  return { id: row.id, name: row.name, email: row.email, isOperator: row.is_operator }
}

function toInvitation(row: InvitationRow): Invitation {
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
