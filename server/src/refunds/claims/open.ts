import { timingSafeEqual } from 'node:crypto'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import type { RefundId, StoreId } from '../../ids.ts'
import { hashToken } from '../../members/token.ts'
import { readStore } from '../../stores/rows.ts'
import type { Store } from '../../stores/store.ts'
import type { Refund } from '../refund.ts'
import { findRefund } from '../rows.ts'
import type { Claim } from './claim.ts'

/** A browser that has opened a link keeps these: the link's token, and a secret of its own. */
export type Opened = { readonly token: string; readonly secret: string }

/**
 * `open`: asks for an address. `named`, `confirmed`, `returned`: the same browser has named one. `used`: another browser
 * has. `canceled`: the refund ended, or the store paid it elsewhere.
 */
export type ClaimState = 'open' | 'named' | 'confirmed' | 'returned' | 'used' | 'expired' | 'canceled'

export type ClaimView = {
  readonly refund: Refund
  readonly claim: Claim
  readonly store: Store
  readonly state: ClaimState
}

/** The refund of a link; null if we have no such link, or another has replaced it. A link can be opened many times. */
export async function openClaim(ctx: Context, token: string): Promise<RefundId | null> {
  return (await findByToken(ctx.db, hashToken(token)))?.refundId ?? null
}

/** A refund as the browser that opened its link sees it; null if the link is not current. */
export async function readClaim(
  ctx: Context,
  refundId: string,
  { token, secret }: Opened,
): Promise<ClaimView | null> {
  const found = await findByToken(ctx.db, hashToken(token))
  if (!found || found.refundId !== refundId) return null
  const [refund, store] = await Promise.all([
    findRefund(ctx.db, found.storeId, found.refundId),
    readStore(ctx.db, found.storeId),
  ])
  if (!refund?.claim || !store) return null
  return { refund, claim: refund.claim, store, state: stateOf(refund, refund.claim, secret) }
}

export function stateOf({ status, cancelAskedAt }: Refund, claim: Claim, secret: string): ClaimState {
  const { named } = claim
  if (named && !timingSafeEqual(named.browserHash, hashToken(secret))) return 'used'
  if (named && status === 'COMPLETED') return 'returned'
  if (['CANCELED', 'FAILED', 'DECLARED'].includes(status) || cancelAskedAt !== null) return 'canceled'
  if (named) return claim.isConfirmed ? 'confirmed' : 'named'
  return claim.isExpired ? 'expired' : 'open'
}

/** The refund that a current link belongs to. */
async function findByToken(
  db: Database,
  tokenHash: Buffer,
): Promise<{ readonly refundId: RefundId; readonly storeId: StoreId } | null> {
  const [row] = await db.query<{ refund_id: RefundId; store_id: StoreId }>(
    'select refund_id, store_id from refund_claims where token_hash = $1',
    [tokenHash],
  )
  return row ? { refundId: row.refund_id, storeId: row.store_id } : null
}
