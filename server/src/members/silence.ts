import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { MemberId, StoreId } from '../ids.ts'
import { type Touch, useTouch } from './confirm.ts'
import { type AlertKind, alertKinds } from './member.ts'
import { Refusal } from './refusal.ts'

/**
 * What keeps news of a store from one of its owners takes a touch: whoever has only their cookie could otherwise act and
 * put away what would tell them.
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
    if (!(await writeMuted(tx, storeId, touch.session.member.id, muted))) throw new Refusal('not_found')
  })
}

/** The owner knows what happened to the store's wallets until then. `until` is the form's text, as it was touched for. */
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

/** False if they do not own the store. */
async function writeMuted(
  tx: Transaction,
  storeId: StoreId,
  memberId: MemberId,
  muted: readonly AlertKind[],
): Promise<boolean> {
  const rows = await tx.query(
    `update memberships set muted_alerts = $3
     where store_id = $1 and member_id = $2 and role = 'owner' returning store_id`,
    [storeId, memberId, muted],
  )
  return rows.length > 0
}

/** Notes what an owner has seen of the store's wallets, up to a time that is not in the future. */
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
