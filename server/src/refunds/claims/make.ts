import type { Actor, RefundClaimLink } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import { isId, type StoreId } from '../../ids.ts'
import { hashToken, newToken } from '../../members/token.ts'
import { Problem } from '../../problems.ts'
import { lockRefund } from '../rows.ts'
import { claimDays, toLinkKey } from './claim.ts'
import { writeLink } from './rows.ts'

/**
 * Makes the link with which the buyer says where a refund should go. Another one replaces it, with whatever was named by
 * then, until a member has confirmed an address. The link is returned once: only its hash is stored.
 */
export async function makeClaim(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  refundId: string,
): Promise<RefundClaimLink> {
  const token = newToken()
  const expiresAt = await ctx.db.transaction(async (tx) => {
    const refund = isId('rf', refundId) ? await lockRefund(tx, storeId, refundId) : null
    if (!refund) throw new Problem('not_found', 'No such refund.')
    if (refund.status !== 'REQUESTED') throw new Problem('claim_closed', `The refund is ${refund.status}.`)
    if (refund.cancelAskedAt !== null) throw new Problem('claim_closed', 'The refund is being canceled.')
    if (refund.recipient !== null)
      throw new Problem('claim_closed', 'The refund has a recipient already, so nobody needs to name one.')
    return await writeLink(tx, {
      refundId: refund.id,
      storeId,
      tokenHash: hashToken(token),
      actor,
      days: claimDays,
    })
  })
  if (!expiresAt) throw new Problem('claim_closed', 'An address was confirmed already.')
  const { checkoutPageUrl, cell } = ctx.config
  return { url: `${checkoutPageUrl}/refund/${toLinkKey(cell, token)}`, expiresAt: expiresAt.toISOString() }
}
