import type { Actor, Refund as Wire } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import { isId, type StoreId } from '../../ids.ts'
import { invalid, Problem } from '../../problems.ts'
import { changeRefund } from '../change.ts'
import { requireRecipient } from '../recipient.ts'
import { toWire } from '../refund.ts'
import { findRefund, lockRefund } from '../rows.ts'
import { readCode } from './address-request.ts'

/**
 * Checks the buyer's address again, because it may have been registered or blocked since it was named. Returns it in
 * stored form. Asks nodes, so it runs before the transaction that confirms the address.
 */
export async function judgeNamed(ctx: Context, storeId: StoreId, refundId: string): Promise<string> {
  const found = isId('rf', refundId) ? await findRefund(ctx.db, storeId, refundId) : null
  if (!found) throw new Problem('not_found', 'No such refund.')
  if (!found.addressRequest?.named)
    throw new Problem('address_request_closed', 'The buyer has not named an address.')
  return await requireRecipient(ctx, storeId, found, found.addressRequest.named.address)
}

/**
 * Confirms the address that the buyer named, with the code that the buyer gave to the store. `judged` is the answer of
 * `judgeNamed`. The address becomes the refund's recipient for good. Each named address has its own code, so the code of
 * an address that was named with an earlier link is refused.
 */
export async function confirmAddress(
  ctx: Context,
  storeId: StoreId,
  refundId: string,
  { judged, code, actor }: { readonly judged: string; readonly code: string; readonly actor: Actor },
  now: Date,
): Promise<Wire> {
  if (actor.type !== 'member')
    throw new Problem('recipient_needs_member', 'Only a member of the store can confirm an address.')
  return await ctx.db.transaction(async (tx) => {
    const refund = isId('rf', refundId) ? await lockRefund(tx, storeId, refundId) : null
    if (!refund) throw new Problem('not_found', 'No such refund.')
    if (!refund.addressRequest?.named)
      throw new Problem('address_request_closed', 'The buyer has not named an address.')
    if (refund.addressRequest.named.code !== readCode(code))
      throw invalid({
        pointer: '/code',
        code: 'code',
        detail:
          'This is not the code of the address that was named. Ask the buyer for the code on their page.',
      })
    if (refund.addressRequest.isConfirmed) return toWire(refund)
    if (refund.addressRequest.named.address !== judged || refund.status !== 'REQUESTED')
      throw new Problem('address_request_closed', `The refund is ${refund.status}.`)
    const isOpen = refund.recipient === null && refund.cancelAskedAt === null
    const { address, code: named } = refund.addressRequest.named
    // Changes nothing if another address was named meanwhile, or this one was confirmed before.
    const confirmed = await tx.query(
      `update address_requests set confirmed_at = clock(), confirmed_by = $3
       where refund_id = $1 and code = $2 and confirmed_at is null returning refund_id`,
      [refund.id, named, JSON.stringify(actor)],
    )
    if (!isOpen || confirmed.length === 0)
      throw new Problem('address_request_closed', 'The refund is being canceled, or has a recipient already.')
    const by = { actor, now, event: 'refund.address_updated' } as const
    return toWire(await changeRefund(ctx, tx, refund, { recipient: address }, by))
  })
}
