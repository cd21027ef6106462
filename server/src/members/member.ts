import type { Member as WireMember } from '@farthing/sdk'
import type { InvitationId, MemberId, PasskeyId, SessionId, StoreId } from '../ids.ts'

/**
 * People who act for stores. A person becomes a member by an invitation, a link with a one-time token. Opening the link
 * changes nothing; the statement that stores the passkey made with it uses it up (enrol.ts). From then on the member
 * signs in with that passkey (sign-in.ts), which opens a session (session.ts). The most important actions (on passkeys
 * and members, and in other rooms on keys, wallets and refunds) each need a touch of the passkey (confirm.ts).
 *
 * A member who has lost every passkey gets a new invitation from an owner, which ends all their sessions and passkeys,
 * or makes a new passkey with a printed code (recovery-codes.ts).
 */
export const roles = ['owner', 'manager', 'developer', 'viewer'] as const
export type Role = (typeof roles)[number]

/** The alerts that owners are mailed, unless they switch them off. */
export const alertKinds = ['money', 'webhooks'] as const
export type AlertKind = (typeof alertKinds)[number]

/** What a member is mailed about the payments of a store. Unless they choose, owners get one mail a day. */
export const paymentMails = ['every', 'daily', 'none'] as const
export type PaymentMails = (typeof paymentMails)[number]

export type Member = {
  readonly id: MemberId
  readonly name: string
  readonly email: string | null
  readonly isOperator: boolean
}

/** A member of one store. */
export type StoreMember = {
  readonly id: MemberId
  readonly name: string
  readonly email: string | null
  readonly role: Role
  readonly isOperator: boolean
  readonly createdAt: Date
}

/** One store of a member. */
export type Membership = {
  readonly storeId: StoreId
  readonly storeName: string
  readonly mode: 'live' | 'test'
  readonly timeZone: string
  readonly role: Role
  /** How far the store's event log goes. */
  readonly sequence: bigint
}

export type Invitation = {
  readonly id: InvitationId
  readonly storeId: StoreId
  readonly memberId: MemberId
  /** It replaces a member's passkeys instead of making a member. */
  readonly isRecovery: boolean
  readonly name: string
  readonly email: string | null
  readonly role: Role
  /** Null: an operator. */
  readonly invitedBy: MemberId | null
  readonly createdAt: Date
  readonly expiresAt: Date
}

export type Passkey = {
  readonly id: PasskeyId
  readonly credentialId: string
  readonly memberId: MemberId
  readonly publicKey: Uint8Array<ArrayBuffer>
  readonly counter: number
  readonly transports: readonly string[]
  /** Its member's name for it. */
  readonly name: string
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
  /** Until when it confirms nothing, for one that was made with a recovery code. */
  readonly waitsUntil: Date | null
  readonly isWaiting: boolean
}

/** A passkey that an authenticator has just made. */
export type NewPasskey = Omit<Passkey, 'memberId' | 'createdAt' | 'lastUsedAt' | 'waitsUntil' | 'isWaiting'>

/** A signed-in browser of a member. */
export type Session = {
  readonly id: SessionId
  readonly tokenHash: Buffer
  readonly member: Member
  readonly seenAt: Date
}

/** A browser and an address that a session was used from, and the last time, to within a few minutes. */
export type SessionUse = { readonly browser: string; readonly address: string; readonly at: Date }

export function isRole(text: string): text is Role {
  return roles.some((role) => role === text)
}

export function memberToWire({ id, name, role }: Pick<StoreMember, 'id' | 'name' | 'role'>): WireMember {
  return { id, name, role }
}
