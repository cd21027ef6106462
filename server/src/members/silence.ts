import type { Context } from '../context.ts'
import type { StoreId } from '../ids.ts'
import * as alerts from './alert-rows.ts'
import { type Touch, useTouch } from './confirm.ts'
import { type AlertKind, alertKinds } from './member.ts'
import { Refusal } from './refusal.ts'
import * as rows from './rows.ts'

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
    await useTouch(ctx, tx, touch, 'alerts.choose', values, now)
    if (!(await alerts.writeMuted(tx, storeId, touch.session.member.id, muted)))
      throw new Refusal('not_found')
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
    await useTouch(ctx, tx, touch, 'wallet.known', { storeId, until }, now)
    await rows.noteWalletsSeen(tx, storeId, touch.session.member.id, at)
  })
}
