import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { checkAtEnd, joinTransaction } from '../database/scope.ts'
import type { SessionId, StoreId } from '../ids.ts'
import { actorOfSession } from './announce.ts'
import type { Subject } from './challenge.ts'
import { type Action, type Touch, useTouch } from './confirm.ts'
import { lockFor } from './invite.ts'
import type { Role, Session } from './member.ts'
import { Refusal } from './refusal.ts'
import { type Right, requireRight } from './rights.ts'
import { holdSession } from './session.ts'

/** An acting member, as their verb sees them. */
export type Acting = { readonly ctx: Context; readonly actor: Actor; readonly role: Role }

/**
 * Lets a member do what a key can do by the API, with the same verb. Role and session are checked in the verb's
 * transaction, so a member who loses either loses the right at once.
 */
export async function actAs<Result>(
  ctx: Context,
  storeId: StoreId,
  session: Session,
  right: Right,
  work: (acting: Acting) => Promise<Result>,
): Promise<Result> {
  return await ctx.db.transaction(async (tx) => {
    const members = await lockFor(tx, storeId, session.member.id, right)
    const { role } = members.find(({ id }) => id === session.member.id) ?? refuse()
    const result = await work({
      ctx: { ...ctx, db: joinTransaction(ctx.db, tx) },
      actor: actorOfSession(session),
      role,
    })
    if (!(await holdSession(tx, session.id))) signedOut()
    return result
  })
}

/** The same for verbs with transactions of their own: role and session are checked at the end of each. */
export function actingAs(ctx: Context, storeId: StoreId, session: Session, right: Right): Context {
  const check = async (tx: Transaction) =>
    requireRight((await holdRole(tx, session.id, storeId)) ?? signedOut(), right)
  return { ...ctx, db: checkAtEnd(ctx.db, check) }
}

/**
 * The same for actions that need a touch. The touch is used up in that transaction, and the verb gets only `values`.
 */
export async function actWithTouch<Result>(
  ctx: Context,
  asked: {
    readonly storeId: StoreId
    readonly touch: Touch
    readonly right: Right
    readonly action: Action
    readonly values: Subject
    readonly now: Date
  },
  work: (acting: Acting) => Promise<Result>,
): Promise<Result> {
  const { storeId, touch, right, action, now } = asked
  return await ctx.db.transaction(async (tx) => {
    const joined = { ...ctx, db: joinTransaction(ctx.db, tx) }
    return await actAs(joined, storeId, touch.session, right, async (acting) => {
      await useTouch(ctx, tx, touch, { action, values: { ...asked.values, storeId } }, now)
      return await work(acting)
    })
  })
}

function signedOut(): never {
  throw new Refusal('signed_out')
}

function refuse(): never {
  throw new Refusal('not_found')
}

/** The role of a session's member in a store. It cannot be taken away until the transaction ends. */
async function holdRole(tx: Transaction, id: SessionId, storeId: StoreId): Promise<Role | null> {
  const [row] = await tx.query<{ role: Role }>(
    `select m.role from memberships m join sessions s on s.member_id = m.member_id
     where m.store_id = $2 and s.id = $1 for share of m for key share of s`,
    [id, storeId],
  )
  return row?.role ?? null
}

/** The same for `work`, which carries out what a member decided a moment ago and may not read sessions. */
export async function holdActingRole(tx: Transaction, id: SessionId, storeId: StoreId): Promise<Role | null> {
  const [row] = await tx.query<{ role: Role | null }>('select acting_role($1, $2) as role', [id, storeId])
  return row?.role ?? null
}
