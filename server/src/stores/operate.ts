import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { type Touch, useTouch } from '../members/confirm.ts'
import { inviteAsOperatorIn, type NewInvitation } from '../members/invite.ts'
import type { Session } from '../members/member.ts'
import { Refusal } from '../members/refusal.ts'
import { lockMember } from '../members/rows.ts'
import type { Mode } from '../networks.ts'
import { createStoreIn } from './create.ts'
import { type Decision, decideStanding } from './standing.ts'
import { networksFor } from './store.ts'

/**
 * What whoever runs the deployment does to stores in the console, each with a touch of their passkey. The flag is read
 * again in the transaction; to everybody without it there is nothing here.
 */
export async function decideAsOperator(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  decision: Decision,
  now: Date,
): Promise<void> {
  const { verb, ...reason } = decision
  await ctx.db.transaction(async (tx) => {
    const actor = await requireOperator(tx, touch.session)
    await useTouch(ctx, tx, touch, `store.${verb}`, { storeId, ...reason }, now)
    await decideStanding(ctx, tx, storeId, actor, decision, now)
  })
}

/** A store and the link for its first owner: both, or neither. */
export async function createStoreAsOperator(
  ctx: Context,
  touch: Touch,
  wanted: {
    readonly storeName: string
    readonly mode: Mode
    readonly name: string
    readonly email: string | null
  },
  now: Date,
): Promise<NewInvitation> {
  const { storeName, mode, name, email } = wanted
  if (networksFor(ctx, mode).length === 0) throw new Refusal('invalid')
  return await ctx.db.transaction(async (tx) => {
    const actor = await requireOperator(tx, touch.session)
    await useTouch(ctx, tx, touch, 'store.create', { storeName, mode, name, email: email ?? '' }, now)
    const { id } = await createStoreIn(ctx, tx, { name: storeName, mode }, now)
    return await inviteAsOperatorIn(ctx, tx, id, actor, { name, email, role: 'owner' }, now)
  })
}

/** A link for the first owner of a store that has none. */
export async function inviteOwnerAsOperator(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  { name, email }: { readonly name: string; readonly email: string | null },
  now: Date,
): Promise<NewInvitation> {
  return await ctx.db.transaction(async (tx) => {
    const actor = await requireOperator(tx, touch.session)
    await useTouch(ctx, tx, touch, 'store.invite', { storeId, name, email: email ?? '' }, now)
    return await inviteAsOperatorIn(ctx, tx, storeId, actor, { name, email, role: 'owner' }, now)
  })
}

async function requireOperator(tx: Transaction, { member }: Session): Promise<Actor> {
  if (!(await lockMember(tx, member.id))) throw new Refusal('not_found')
  return { type: 'operator', id: member.id, name: member.name }
}
