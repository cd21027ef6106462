import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { joinTransaction } from '../database/join.ts'
import type { StoreId } from '../ids.ts'
import { actorOfSession } from './announce.ts'
import type { Subject } from './challenge.ts'
import { type Action, type Touch, useTouch } from './confirm.ts'
import { lockFor } from './invite.ts'
import type { Role, Session } from './member.ts'
import { Refusal } from './refusal.ts'
import type { Right } from './rights.ts'

/** A member who acts, as their verb sees them. */
type Acting = { readonly ctx: Context; readonly actor: Actor; readonly role: Role }

/**
 * Lets a member do what a key can do by the API, by the same verb. The role is asked for in the verb's transaction, so
 * that whoever loses it loses it at once.
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
    return await work({
      ctx: { ...ctx, db: joinTransaction(ctx.db, tx) },
      actor: actorOfSession(session),
      role,
    })
  })
}

/** The same for what takes a touch. It is used up in that transaction, and `values` are all that the verb is given. */
export async function actWithTouch<Result>(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  right: Right,
  asked: { readonly action: Action; readonly values: Subject },
  now: Date,
  work: (acting: Acting) => Promise<Result>,
): Promise<Result> {
  return await ctx.db.transaction(async (tx) => {
    const joined = { ...ctx, db: joinTransaction(ctx.db, tx) }
    return await actAs(joined, storeId, touch.session, right, async (acting) => {
      await useTouch(ctx, tx, touch, asked.action, { ...asked.values, storeId }, now)
      return await work(acting)
    })
  })
}

function refuse(): never {
  throw new Refusal('not_found')
}
