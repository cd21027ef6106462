import type { Actor, EventType, Store, Wallet } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { nameStore } from '../database/scope.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import type { MemberId, StoreId } from '../ids.ts'
import type { MailKind, MailSubject } from '../mails/mail.ts'
import { sendsMail, writeMail } from '../mails/write.ts'
import { type Member, memberToWire, type Session, type StoreMember } from './member.ts'
import { isKnown, listMemberships, memberColumns } from './rows.ts'

type MemberEvent = Extract<EventType, `member.${string}`>
export type WalletEvent = Extract<EventType, `wallet.${string}`>

export function actorOf({ id, name }: { readonly id: MemberId; readonly name: string }): Actor {
  return { type: 'member', id, name }
}

export function actorOfSession({ member }: Session): Actor {
  return actorOf(member)
}

/** Writes a member event into a store's log, and mails it to the owners. No other code makes these events. */
export async function announce(
  ctx: Context,
  tx: Transaction,
  news: {
    readonly storeId: StoreId
    readonly actor: Actor
    readonly type: MemberEvent
    readonly member: Pick<StoreMember, 'id' | 'name' | 'role'>
    readonly now: Date
  },
): Promise<void> {
  const { storeId, actor, type, member, now } = news
  await nameStore(tx, storeId)
  await appendEvent(tx, newEvent(ctx, storeId, actor, { type, data: { member: memberToWire(member) } }, now))
  await mailOwners(ctx, tx, {
    ...{ kind: hasOwnShare(type) ? 'code' : 'member', storeId, actor, memberId: member.id, now },
    subject: `The members of your store changed (${storeId})`,
    sentence: describe[type](member, nameOf(actor)),
  })
}

/** A thief must not use up the mails about them by other changes of members first. */
function hasOwnShare(type: MemberEvent): boolean {
  return type === 'member.code_used' || type === 'member.email_changed'
}

/** The same in the log of each of the member's stores: how they sign in concerns all of them. */
export async function announceEverywhere(
  ctx: Context,
  tx: Transaction,
  { id, name }: Pick<Member, 'id' | 'name'>,
  type: MemberEvent,
  now: Date,
): Promise<void> {
  for (const { storeId, role } of await listMemberships(tx, id))
    await announce(ctx, tx, { storeId, actor: actorOf({ id, name }), type, member: { id, name, role }, now })
}

/**
 * Writes into the log of each of a member's stores that the member is somewhere new, and mails it to the member alone.
 * The address is in the mail but not in the log, which is kept. The browser's name is in neither: a thief chooses it,
 * and could send the member a message with it.
 */
export async function announcePlace(
  ctx: Context,
  tx: Transaction,
  news: {
    readonly memberId: MemberId
    readonly type: 'member.signed_in' | 'member.session_moved'
    readonly address: string
    readonly now: Date
  },
): Promise<void> {
  const { type, address, now } = news
  const [member] = await tx.query<Member>(`select ${memberColumns} from members where id = $1`, [
    news.memberId,
  ])
  if (!member) return
  const sentence = describe[type]({ name: member.name, role: 'viewer' }, member.name)
  const stores = await listMemberships(tx, member.id)
  // An operator who belongs to no store has neither a store's log nor a store's mails.
  if (stores.length === 0) ctx.log.warn({ memberId: member.id, type }, 'a member is somewhere new')
  for (const [place, { storeId, role }] of stores.entries()) {
    await nameStore(tx, storeId)
    const data = { member: memberToWire({ ...member, role }) }
    await appendEvent(tx, newEvent(ctx, storeId, actorOf(member), { type, data }, now))
    if (place > 0 || member.email === null) continue
    const text = `${sentence}

Address: ${address}
Time: ${timeOf(now)}

If that was you, there is nothing to do. If not, end the session under “Where you are signed in”: ${ctx.config.consoleUrl}/account
`
    const mail = { to: member.email, subject: 'Your account was used from a new place', text } as const
    await writeMail(ctx, tx, { kind: 'member', storeId, about: member.id }, mail, now)
  }
}

/** Writes into a store's log what happened to one of its wallets. All owners get a mail, also the one who did it. */
export async function announceWallet(
  ctx: Context,
  tx: Transaction,
  news: {
    readonly storeId: StoreId
    readonly actor: Actor
    readonly type: WalletEvent
    readonly wallet: Wallet
    readonly now: Date
  },
): Promise<void> {
  const { storeId, actor, type, wallet, now } = news
  await nameStore(tx, storeId)
  await appendEvent(tx, newEvent(ctx, storeId, actor, { type, data: { wallet } }, now))
  await mailOwners(ctx, tx, {
    ...{ kind: 'store', storeId, actor, memberId: null, now },
    subject: `The wallets of your store changed (${storeId})`,
    sentence: describeWallet[type](wallet.walletAddress, nameOf(actor)),
  })
}

/** Writes an operator's decision about a store into its log. All owners get a mail. */
export async function announceStore(
  ctx: Context,
  tx: Transaction,
  news: {
    readonly actor: Actor
    readonly type: keyof typeof describeStore
    readonly store: Store
    readonly now: Date
  },
): Promise<void> {
  const { actor, type, store, now } = news
  const storeId = store.id as StoreId
  await nameStore(tx, storeId)
  await appendEvent(tx, newEvent(ctx, storeId, actor, { type, data: { store } }, now))
  await mailOwners(ctx, tx, {
    ...{ kind: 'store', storeId, actor, memberId: null, now },
    subject: `The operator decided about your store (${storeId})`,
    sentence: describeStore[type](nameOf(actor), store.suspendedReason),
  })
}

/**
 * Mails one sentence to all owners of a store and, if it is about a member, to that member: an owner who was just
 * removed has to know. The addresses are unverified, so the subject contains no text that a store chose. Until a
 * stranger's store is known, only an operator's decisions about it are mailed. Without a mail server only the event is
 * written.
 */
async function mailOwners(
  ctx: Context,
  tx: Transaction,
  news: {
    readonly kind: MailKind
    readonly storeId: StoreId
    readonly actor: Actor
    readonly subject: MailSubject
    readonly sentence: string
    /** The member it is about. */
    readonly memberId: MemberId | null
    readonly now: Date
  },
): Promise<void> {
  if (!sendsMail(ctx)) return
  const { kind, storeId, actor, subject, sentence, memberId, now } = news
  const { storeName, isKnown, addresses } = await listOwnerAddresses(tx, storeId, memberId)
  if (!isKnown && actor.type !== 'operator') return
  const text = `${sentence}

Store: ${storeName} (${storeId})
Time: ${timeOf(now)}

If you do not know why, look at the store in the console: ${ctx.config.consoleUrl}
You get this mail because you are an owner of the store, or because it is about you.
`
  for (const to of addresses) await writeMail(ctx, tx, { kind, storeId }, { to, subject, text }, now)
}

function timeOf(now: Date): string {
  return `${now.toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

function nameOf({ type, id, name }: Actor): string {
  if (type === 'operator') return `The operator ${name ?? id}`
  return type === 'key' ? `The key ${name ? `“${name}” ` : ''}${id}` : (name ?? id)
}

const describe: Readonly<
  Record<MemberEvent, (member: Pick<StoreMember, 'name' | 'role'>, who: string) => string>
> = {
  'member.invited': ({ name, role }, who) => `${who} made a link for ${name} (${role})`,
  'member.joined': ({ name, role }) => `${name} joined (${role})`,
  'member.recovered': ({ name }) => `${name} used a recovery link, and all their earlier passkeys are gone`,
  'member.removed': ({ name, role }, who) => `${who} removed ${name} (${role})`,
  'member.role_changed': ({ name, role }, who) => `${who} gave ${name} the role ${role}`,
  'member.operator_added': ({ name }, who) => `${who} made ${name} an operator of the deployment`,
  'member.operator_removed': ({ name }, who) => `${who} removed ${name} as an operator of the deployment`,
  'member.codes_made': ({ name }) => `${name} made recovery codes, and the ones from before stopped working`,
  'member.code_used': ({ name }) =>
    `${name} used a recovery code to make a new passkey. It signs in at once and confirms changes in 24 hours. Until then ${name} can refuse it in the console, and an owner can replace it or remove ${name} under Team. Ask ${name} whether it was them`,
  'member.passkey_added': ({ name }) => `${name} added a passkey`,
  'member.passkey_removed': ({ name }) => `${name} removed a passkey`,
  'member.identity_added': ({ name }) => `${name} connected an account to sign in with`,
  'member.identity_removed': ({ name }) => `${name} disconnected an account`,
  'member.email_changed': ({ name }) => `${name} changed the address that their mails go to`,
  'member.signed_in': ({ name }) => `${name} signed in from a new browser or network`,
  'member.session_moved': ({ name }) => `A session of ${name} was used from another browser or network`,
}

const describeWallet: Readonly<Record<WalletEvent, (address: string, who: string) => string>> = {
  'wallet.registered': (address, who) => `${who} asked to be paid to ${address}`,
  'wallet.updated': (address, who) => `${who} changed something about the wallet ${address}`,
  'wallet.retired': (address, who) => `${who} took the wallet ${address} out of use`,
  'wallet.confirmed': (address, who) => `${who} confirmed the wallet ${address}: new payments go there`,
  'wallet.refused': (address, who) => `${who} refused or replaced the wallet ${address}`,
  'wallet.undone': (address, who) => `${who} undid a change of wallet: ${address}`,
}

const describeStore = {
  'store.approved': (who: string) => `${who} approved the store: it can take payments`,
  'store.suspended': (who: string, reason: string | null) =>
    `${who} suspended the store, so it creates no checkouts: ${reason}`,
  'store.resumed': (who: string) => `${who} lifted the suspension: the store can take payments again`,
}

/** The addresses of the store's owners and of the member it is about. */
async function listOwnerAddresses(
  tx: Transaction,
  storeId: StoreId,
  memberId: MemberId | null,
): Promise<{
  readonly storeName: string
  readonly isKnown: boolean
  readonly addresses: readonly string[]
}> {
  const [row] = await tx.query<{ storeName: string; isKnown: boolean; addresses: string[] }>(
    `select s.name as "storeName", ${isKnown} as "isKnown", array(
       select distinct m.email from members m
       where m.email is not null and (m.id = $2 or m.id in (
         select member_id from memberships where store_id = s.id and role = 'owner'))
     ) as addresses
     from stores s where s.id = $1`,
    [storeId, memberId],
  )
  return row ?? { storeName: '', isKnown: false, addresses: [] }
}
