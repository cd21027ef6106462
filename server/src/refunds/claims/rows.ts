import type { Actor } from '@farthing/sdk'
import type { Database, Transaction } from '../../database/db.ts'
import type { RefundId, StoreId } from '../../ids.ts'
import type { Claim } from './claim.ts'

/** SQL for claim links. */
export type ClaimJson = {
  expiresAt: string
  isExpired: boolean
  address: string | null
  code: string | null
  browserHash: string | null
  isConfirmed: boolean
}

/** SQL: a row of `refund_claims` as JSON, for `toClaim`. */
export function claimJson(alias: string): string {
  return `json_build_object('expiresAt', ${alias}.expires_at, 'isExpired', ${alias}.expires_at <= clock(),
    'address', ${alias}.address, 'code', ${alias}.code, 'browserHash', encode(${alias}.browser_hash, 'hex'),
    'isConfirmed', ${alias}.confirmed_at is not null)`
}

export function toClaim({ expiresAt, isExpired, address, code, browserHash, isConfirmed }: ClaimJson): Claim {
  const isNamed = address !== null && code !== null && browserHash !== null
  return {
    expiresAt: new Date(expiresAt),
    isExpired,
    named: isNamed ? { address, code, browserHash: Buffer.from(browserHash, 'hex') } : null,
    isConfirmed,
  }
}

/** A new link replaces the one before and what was named with it. A link whose address was confirmed stays. */
export async function writeLink(
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
    `insert into refund_claims as m (refund_id, store_id, token_hash, actor, made_at, expires_at)
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

/** The refund that a link is for. */
export async function findByToken(
  db: Database | Transaction,
  tokenHash: Buffer,
): Promise<{ readonly refundId: RefundId; readonly storeId: StoreId } | null> {
  const [row] = await db.query<{ refund_id: RefundId; store_id: StoreId }>(
    'select refund_id, store_id from refund_claims where token_hash = $1',
    [tokenHash],
  )
  return row ? { refundId: row.refund_id, storeId: row.store_id } : null
}

/** Takes an address once, from whoever has the link that is current. False if it is too late for that. */
export async function writeNamed(
  tx: Transaction,
  refundId: RefundId,
  tokenHash: Buffer,
  named: { readonly address: string; readonly code: string; readonly browserHash: Buffer },
): Promise<boolean> {
  const rows = await tx.query(
    `update refund_claims set address = $3, code = $4, browser_hash = $5, named_at = clock()
     where refund_id = $1 and token_hash = $2 and address is null and expires_at > clock() returning refund_id`,
    [refundId, tokenHash, named.address, named.code, named.browserHash],
  )
  return rows.length > 0
}

/** Confirms the address that has this code. False if another was named meanwhile, or it was confirmed before. */
export async function writeConfirmed(
  tx: Transaction,
  refundId: RefundId,
  code: string,
  actor: Actor,
): Promise<boolean> {
  const rows = await tx.query(
    `update refund_claims set confirmed_at = clock(), confirmed_by = $3
     where refund_id = $1 and code = $2 and confirmed_at is null returning refund_id`,
    [refundId, code, JSON.stringify(actor)],
  )
  return rows.length > 0
}
