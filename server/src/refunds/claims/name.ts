import type { Context } from '../../context.ts'
import { hashToken } from '../../members/token.ts'
import { changeRefund } from '../change.ts'
import { judgeRecipient } from '../recipient.ts'
import { lockRefund } from '../rows.ts'
import { newCode } from './claim.ts'
import { type Opened, readClaim, stateOf } from './open.ts'
import { writeNamed } from './rows.ts'

/** `closed`: the link is not open any more, for whatever reason; reading the claim says why. */
export type NameOutcome = 'named' | 'closed' | 'malformed' | 'refused'

/**
 * Takes the address that a buyer names, once. Of two browsers that name one at the same moment the database takes one.
 * Throws a Problem if the address cannot be checked now.
 */
export async function nameAddress(
  ctx: Context,
  refundId: string,
  opened: Opened,
  text: string,
  now: Date,
): Promise<NameOutcome> {
  const view = await readClaim(ctx, refundId, opened)
  if (view?.state !== 'open') return 'closed'
  const { id, storeId } = view.refund
  const judged = await judgeRecipient(ctx, storeId, view.refund, text)
  if ('refusal' in judged) return judged.refusal
  return await ctx.db.transaction(async (tx) => {
    const refund = await lockRefund(tx, storeId, id)
    if (!refund?.claim || refund.status !== 'REQUESTED' || refund.recipient !== null) return 'closed'
    if (stateOf(refund, refund.claim, opened.secret) !== 'open') return 'closed'
    const named = { address: judged.recipient, code: newCode(), browserHash: hashToken(opened.secret) }
    if (!(await writeNamed(tx, id, hashToken(opened.token), named))) return 'closed'
    await changeRefund(ctx, tx, refund, {}, { actor: null, now, event: 'refund.claimed' })
    return 'named'
  })
}
