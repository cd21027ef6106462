import { timingSafeEqual } from 'node:crypto'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import type { RefundId, StoreId } from '../../ids.ts'
import { hashToken } from '../../members/token.ts'
import { readStore } from '../../stores/rows.ts'
import type { Store } from '../../stores/store.ts'
import { changeRefund } from '../change.ts'
import { judgeRecipient } from '../recipient.ts'
import type { Refund } from '../refund.ts'
import { findRefund, lockRefund } from '../rows.ts'
import { type AddressRequest, newCode } from './address-request.ts'

/** `closed`: the link is no longer open. `readAddressRequest` says why. */
type NameOutcome = 'named' | 'closed' | 'malformed' | 'refused'

/**
 * Stores the address that a buyer names, once. If two browsers do so at the same moment, the first one counts. Throws a
 * Problem if the address cannot be checked now.
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
    // Only if the link is current and has no address yet.
    const named = await tx.query(
      `update address_requests set address = $3, code = $4, browser_hash = $5, named_at = clock()
       where refund_id = $1 and token_hash = $2 and address is null and expires_at > clock() returning refund_id`,
      [id, hashToken(opened.token), judged.recipient, newCode(), hashToken(opened.secret)],
    )
    if (named.length === 0) return 'closed'
    await changeRefund(ctx, tx, refund, {}, { actor: null, now, event: 'refund.address_updated' })
    return 'named'
  })
}

/** A browser that has opened a link keeps the link's token and its own secret. */
export type Opened = { readonly token: string; readonly secret: string }

/**
 * `open`: asks for an address. `named`, `confirmed`, `returned`: this browser has named one. `used`: another browser
 * has named one. `canceled`: the refund ended, or the store paid it in another way.
 */
type AddressRequestState = 'open' | 'named' | 'confirmed' | 'returned' | 'used' | 'expired' | 'canceled'

export type AddressRequestView = {
  readonly refund: Refund
  readonly addressRequest: AddressRequest
  readonly store: Store
  readonly state: AddressRequestState
}

/**
 * The refund of a link; null if there is no such link, or a newer one has replaced it. A link can be opened many times.
 */
export async function findLinked(ctx: Context, token: string): Promise<RefundId | null> {
  return (await findByToken(ctx.db, hashToken(token)))?.refundId ?? null
}

/** A refund as the browser that opened its link sees it; null if the link is not current. */
export async function readAddressRequest(
  ctx: Context,
  refundId: string,
  { token, secret }: Opened,
): Promise<AddressRequestView | null> {
  const found = await findByToken(ctx.db, hashToken(token))
  if (!found || found.refundId !== refundId) return null
  const [refund, store] = await Promise.all([
    findRefund(ctx.db, found.storeId, found.refundId),
    readStore(ctx.db, found.storeId),
  ])
  if (!refund?.addressRequest || !store) return null
  return {
    refund,
    addressRequest: refund.addressRequest,
    store,
    state: stateOf(refund, refund.addressRequest, secret),
  }
}

function stateOf(
  { status, cancelAskedAt }: Refund,
  addressRequest: AddressRequest,
  secret: string,
): AddressRequestState {
  const { named } = addressRequest
  if (named && !timingSafeEqual(named.browserHash, hashToken(secret))) return 'used'
  if (named && status === 'COMPLETED') return 'returned'
  if (['CANCELED', 'FAILED', 'DECLARED'].includes(status) || cancelAskedAt !== null) return 'canceled'
  if (named) return addressRequest.isConfirmed ? 'confirmed' : 'named'
  return addressRequest.isExpired ? 'expired' : 'open'
}

/** The refund that a current link belongs to. */
async function findByToken(
  db: Database,
  tokenHash: Buffer,
): Promise<{ readonly refundId: RefundId; readonly storeId: StoreId } | null> {
  const [row] = await db.query<{ refund_id: RefundId; store_id: StoreId }>(
    'select refund_id, store_id from address_requests where token_hash = $1',
    [tokenHash],
  )
  return row ? { refundId: row.refund_id, storeId: row.store_id } : null
}
