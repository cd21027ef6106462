import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { MemberId, StoreId } from '../ids.ts'
import { type Touch, useTouch } from './confirm.ts'
import { type AlertKind, alertKinds } from './member.ts'
import { Refusal } from './refusal.ts'

/**
 * Hiding news of a store from one of its owners needs a touch. A thief with only the cookie could otherwise act and
 * then hide the traces.
 */
export async function muteAlerts(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  wanted: readonly AlertKind[],
  now: Date,
): Promise<void> {
  const values = { storeId, ...Object.fromEntries(wanted.map((kind) => [kind, 'yes'])) }
  const muted = alertKinds.filter((kind) => !wanted.includes(kind))
  await ctx.db.transaction(async (tx) => {
    await useTouch(ctx, tx, touch, { action: 'alerts.choose', values }, now)
    const owned = await tx.query(
      `update memberships set muted_alerts = $3
       where store_id = $1 and member_id = $2 and role = 'owner' returning store_id`,
      [storeId, touch.session.member.id, muted],
    )
    if (owned.length === 0) throw new Refusal('not_found')
  })
}

/**
 * Records that the owner knows the news of the store's wallets up to a time. `until` is the form's text, which the
 * touch is bound to.
 */
export async function putAwayNews(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  until: string,
  now: Date,
): Promise<void> {
  const at = new Date(until)
  if (Number.isNaN(at.getTime())) throw new Refusal('invalid')
  await ctx.db.transaction(async (tx) => {
    await useTouch(ctx, tx, touch, { action: 'wallet.known', values: { storeId, until } }, now)
    await noteWalletsSeen(tx, storeId, touch.session.member.id, at)
  })
}

export async function listMuted(
  db: Database,
  memberId: MemberId,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = await db.query<{ store_id: string; muted_alerts: string[] }>(
    "select store_id, muted_alerts from memberships where member_id = $1 and role = 'owner'",
    [memberId],
  )
  return new Map(found.map((row) => [row.store_id, row.muted_alerts]))
}

/** Records up to when an owner has seen the news of the store's wallets, but never a time in the future. */
export async function noteWalletsSeen(
  db: Database | Transaction,
  storeId: StoreId,
  memberId: MemberId,
  until: Date,
): Promise<void> {
  await db.query(
    `update memberships set wallets_seen_at = greatest(wallets_seen_at, least($3, clock()))
     where store_id = $1 and member_id = $2`,
    [storeId, memberId, until],
  )
}
