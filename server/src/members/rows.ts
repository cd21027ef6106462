import type { Database, Transaction } from '../database/db.ts'
import type { MemberId, StoreId } from '../ids.ts'
import type { Invitation, Membership, NewPasskey, Passkey, Role, StoreMember } from './member.ts'

type Reader = Database | Transaction

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
  return await db.query<StoreMember>(
    `select m.id, m.name, m.email, m.is_operator as "isOperator", s.role, s.created_at as "createdAt"
     from memberships s join members m on m.id = s.member_id where s.store_id = $1 order by m.id`,
    [storeId],
  )
}

/**
 * SQL: an operator opened or approved the store, or it has proven a wallet. No operator looks at a stranger's test
 * store.
 */
export const isKnown =
  "(not s.signed_up or s.proven_at is not null or (s.mode = 'live' and s.admission = 'approved'))"

/**
 * SQL: whether addresses that somebody enters for the store may be mailed. The store is live and not suspended, and an
 * operator opened it or it has proven a wallet.
 */
export const mayMailStrangers = `(s.mode = 'live' and s.suspended_at is null and (s.proven_at is not null
  or (not s.signed_up and s.admission = 'approved')))`

/** SQL: what the member of a membership `m` is mailed about payments. */
export const chosenMails =
  "coalesce(m.payment_mails, case when m.role = 'owner' then 'daily' else 'none' end)"

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

/** SQL: a Member. */
export const memberColumns = 'id, name, email, is_operator as "isOperator"'

/** SQL: an Invitation from `i`. */
export const invitationColumns = `i.id, i.store_id as "storeId", i.member_id as "memberId",
  i.is_recovery as "isRecovery", i.name, i.email, i.role, i.invited_by as "invitedBy",
  i.created_at as "createdAt", i.expires_at as "expiresAt"`

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
  return await db.query<Invitation>(
    `select ${invitationColumns} from invitations i
     where i.store_id = $1 and i.used_at is null and i.expires_at > clock() order by i.id`,
    [storeId],
  )
}

/** Deletes the open invitations for a member, to any store. */
export async function withdrawFor(tx: Transaction, memberId: MemberId): Promise<void> {
  await tx.query('delete from invitations where member_id = $1 and used_at is null', [memberId])
}

/**
 * Deletes the open invitations that a member made. If a store is given, only the invitations to it, and all links that
 * replace a member's passkeys: such a link opens every store of that member, whichever store made it.
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

export async function deleteRecoveryCodes(tx: Transaction, memberId: MemberId): Promise<void> {
  await tx.query('delete from recovery_codes where member_id = $1', [memberId])
}

export async function deleteIdentities(tx: Transaction, memberId: MemberId): Promise<void> {
  await tx.query('delete from identities where member_id = $1', [memberId])
}

type RawPasskey = Omit<Passkey, 'publicKey' | 'counter'> & { publicKey: Buffer; counter: string }

function toPasskey({ publicKey, counter, ...rest }: RawPasskey): Passkey {
  return { ...rest, publicKey: new Uint8Array(publicKey), counter: Number.parseInt(counter, 10) }
}

/** Reads a row of the same shape whether or not the passkey exists, so that both take equally long. */
export async function findPasskey(db: Reader, credentialId: string): Promise<Passkey | null> {
  const [row] = await db.query<RawPasskey & { isKnown: boolean }>(
    `select coalesce(p.id, '') as id, $1::text as "credentialId", coalesce(p.member_id, '') as "memberId",
       coalesce(p.public_key, decode(repeat('00', 77), 'hex')) as "publicKey", coalesce(p.counter, 0) as counter,
       coalesce(p.transports, '{internal}') as transports, coalesce(p.name, '') as name,
       coalesce(p.created_at, clock()) as "createdAt", coalesce(p.last_used_at, clock()) as "lastUsedAt",
       p.waits_until as "waitsUntil", coalesce(p.waits_until > clock(), false) as "isWaiting",
       p.id is not null as "isKnown"
     from (select 1) always left join passkeys p on p.credential_id = $1`,
    [credentialId],
  )
  if (!row) return null
  const { isKnown, ...raw } = row
  const passkey = toPasskey(raw)
  return isKnown ? passkey : null
}

export async function listPasskeys(db: Reader, memberId: MemberId): Promise<Passkey[]> {
  const rows = await db.query<RawPasskey>(
    `select id, credential_id as "credentialId", member_id as "memberId", public_key as "publicKey", counter, transports,
       name, created_at as "createdAt", last_used_at as "lastUsedAt", waits_until as "waitsUntil",
       coalesce(waits_until > clock(), false) as "isWaiting" from passkeys where member_id = $1 order by id`,
    [memberId],
  )
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
