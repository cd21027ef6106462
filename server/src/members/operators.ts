import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { announce } from './announce.ts'
import type { Member } from './member.ts'
import { Refusal } from './refusal.ts'
import { signOutForGood } from './remove.ts'
import { listMemberships, memberColumns, withdrawFor } from './rows.ts'

/**
 * Makes a member an operator of the deployment, or ends that. Only the command line does this. It gives no access to a
 * store. The logs of the member's stores announce it.
 */
export async function setOperator(
  ctx: Context,
  actor: Actor,
  memberId: string,
  isOperator: boolean,
  now: Date,
): Promise<Member> {
  const member = await ctx.db.transaction(async (tx) => {
    const [changed] = await tx.query<Member>(
      `update members set is_operator = $2 where id = $1 returning ${memberColumns}`,
      [memberId, isOperator],
    )
    if (!changed) throw new Refusal('not_found')
    // Until now, an owner could replace this member's passkeys, and so could become an operator.
    if (isOperator) await withdrawFor(tx, changed.id)
    const stores = await listMemberships(tx, changed.id)
    if (!isOperator && stores.length === 0) await signOutForGood(tx, changed.id)
    const type = isOperator ? 'member.operator_added' : 'member.operator_removed'
    for (const { storeId, role } of stores)
      await announce(ctx, tx, { storeId, actor, type, member: { ...changed, role }, now })
    return changed
  })
  ctx.log.info(
    { memberId, actor: actor.id },
    isOperator ? 'made a member an operator' : 'a member is no longer an operator',
  )
  return member
}
