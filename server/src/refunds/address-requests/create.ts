import type { Actor, AddressRequestLink } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import { isId, type RefundId, type StoreId } from '../../ids.ts'
import { hashToken, newToken } from '../../members/token.ts'
import { Problem } from '../../problems.ts'
import { lockRefund } from '../rows.ts'
import { linkDays, toLinkKey } from './address-request.ts'

/**
 * Makes the link with which the buyer says where a refund should go. Until a member has confirmed an address, a new link
 * replaces the old one and the address that was named with it. The link is returned once: only its hash is stored.
 */
export async function createAddressRequest(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  refundId: string,
): Promise<AddressRequestLink> {
  const token = newToken()
  const expiresAt = await ctx.db.transaction(async (tx) => {
    const refund = isId('rf', refundId) ? await lockRefund(tx, storeId, refundId) : null
    if (!refund) throw new Problem('not_found', 'No such refund.')
    if (refund.status !== 'REQUESTED')
      throw new Problem('address_request_closed', `The refund is ${refund.status}.`)
    if (refund.cancelAskedAt !== null)
      throw new Problem('address_request_closed', 'The refund is being canceled.')
    if (refund.recipient !== null)
      throw new Problem('address_request_closed', 'The refund has a recipient already, so no link is needed.')
    return await writeLink(tx, {
      refundId: refund.id,
      storeId,
      tokenHash: hashToken(token),
      actor,
      days: linkDays,
    })
  })
  if (!expiresAt) throw new Problem('address_request_closed', 'An address was confirmed already.')
  const { checkoutPageUrl, cell } = ctx.config
  return { url: `${checkoutPageUrl}/refund/${toLinkKey(cell, token)}`, expiresAt: expiresAt.toISOString() }
}

/** Writes the link, which replaces an earlier one. Null if an address was confirmed already. */
async function writeLink(
  tx: Transaction,
  link: {
    readonly refundId: RefundId
    readonly storeId: StoreId
    readonly tokenHash: Buffer
    readonly actor: Actor
    readonly days: number
  },
): Promise<Date | null> {
  const [row] = await tx.query<{ expires_at: Date }>(
    `insert into address_requests as m (refund_id, store_id, token_hash, actor, made_at, expires_at)
     values ($1, $2, $3, $4, clock(), clock() + make_interval(days => $5))
     on conflict (refund_id) do update set token_hash = excluded.token_hash, actor = excluded.actor,
       made_at = excluded.made_at, expires_at = excluded.expires_at, address = null, browser_hash = null, code = null,
       named_at = null
       where m.confirmed_at is null
     returning expires_at`,
    [link.refundId, link.storeId, link.tokenHash, JSON.stringify(link.actor), link.days],
  )
  return row?.expires_at ?? null
}
