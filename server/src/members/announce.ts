import type { Actor, EventType, Wallet } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { nameStore } from '../database/scope.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import type { MemberId, StoreId } from '../ids.ts'
import { memberToWire, type Session, type StoreMember } from './member.ts'
import { listMemberships } from './rows.ts'

export function actorOf({ id, name }: { readonly id: MemberId; readonly name: string }): Actor {
  return { type: 'member', id, name }
}

export function actorOfSession({ member }: Session): Actor {
  return actorOf(member)
}

/** Writes a member event into a store's log: the one place where these events are made. */
export async function announce(
  ctx: Context,
  tx: Transaction,
  storeId: StoreId,
  actor: Actor,
  type: Extract<EventType, `member.${string}`>,
  member: Pick<StoreMember, 'id' | 'name' | 'role'>,
  now: Date,
): Promise<void> {
  await nameStore(tx, storeId)
  await appendEvent(tx, newEvent(ctx, storeId, actor, type, { member: memberToWire(member) }, now))
}

/** The same in the logs of all stores of a member: how they sign in concerns each of them. */
export async function announceEverywhere(
  ctx: Context,
  tx: Transaction,
  session: Session,
  type: Extract<EventType, `member.${string}`>,
  now: Date,
): Promise<void> {
  for (const { storeId, role } of await listMemberships(tx, session.member.id))
    await announce(ctx, tx, storeId, actorOfSession(session), type, { ...session.member, role }, now)
}

/** Writes into a store's log what became of a wallet that it is paid to. All owners are told, whoever did it. */
export async function announceWallet(
  ctx: Context,
  tx: Transaction,
  storeId: StoreId,
  actor: Actor,
  type: Extract<EventType, `wallet.${string}`>,
  wallet: Wallet,
  now: Date,
): Promise<void> {
  await appendEvent(tx, newEvent(ctx, storeId, actor, type, { wallet }, now))
}
