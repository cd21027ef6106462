import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import type { RefundId } from '../../ids.ts'
import { hashToken } from '../../members/token.ts'
import { changeRefund } from '../change.ts'
import { judgeRecipient } from '../recipient.ts'
import { lockRefund } from '../rows.ts'
import { newCode } from './address-request.ts'
import { type Opened, readAddressRequest, stateOf } from './open.ts'

/** `closed`: the link is no longer open; `readAddressRequest` says why. */
type NameOutcome = 'named' | 'closed' | 'malformed' | 'refused'

/**
 * Takes the address that a buyer names, once. If two browsers name one at the same moment, the database takes the first.
 * Throws a Problem if the address cannot be checked now.
 */
export async function nameAddress(
  ctx: Context,
  refundId: string,
  opened: Opened,
  text: string,
  now: Date,
): Promise<NameOutcome> {
  const view = await readAddressRequest(ctx, refundId, opened)
  if (view?.state !== 'open') return 'closed'
  const { id, storeId } = view.refund
  const judged = await judgeRecipient(ctx, storeId, view.refund, text)
  if ('refusal' in judged) return judged.refusal
  return await ctx.db.transaction(async (tx) => {
    const refund = await lockRefund(tx, storeId, id)
    if (!refund?.addressRequest || refund.status !== 'REQUESTED' || refund.recipient !== null) return 'closed'
    if (stateOf(refund, refund.addressRequest, opened.secret) !== 'open') return 'closed'
    const named = { address: judged.recipient, code: newCode(), browserHash: hashToken(opened.secret) }
    if (!(await writeNamed(tx, id, hashToken(opened.token), named))) return 'closed'
    await changeRefund(ctx, tx, refund, {}, { actor: null, now, event: 'refund.address_updated' })
    return 'named'
  })
}

/** Writes the address if the link is current and has none yet. False otherwise. */
async function writeNamed(
  tx: Transaction,
  refundId: RefundId,
  tokenHash: Buffer,
  named: { readonly address: string; readonly code: string; readonly browserHash: Buffer },
): Promise<boolean> {
  const rows = await tx.query(
    `update address_requests set address = $3, code = $4, browser_hash = $5, named_at = clock()
     where refund_id = $1 and token_hash = $2 and address is null and expires_at > clock() returning refund_id`,
    [refundId, tokenHash, named.address, named.code, named.browserHash],
  )
  return rows.length > 0
}
