import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { MemberId, StoreId } from '../ids.ts'
import { type Touch, useTouch } from './confirm.ts'
import { type AlertKind, alertKinds, type PaymentMails } from './member.ts'
import { Refusal } from './refusal.ts'
import { chosenMails } from './rows.ts'

/**
 * Hiding news of a store from one of its members needs a touch. A thief with only the cookie could otherwise act and
 * then hide the traces. Only owners get alerts.
 */
export async function chooseMails(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  wanted: { readonly alerts: readonly AlertKind[]; readonly payments: PaymentMails },
  now: Date,
): Promise<void> {
  const { alerts, payments } = wanted
  const values = { storeId, payments, ...Object.fromEntries(alerts.map((kind) => [kind, 'yes'])) }
  const muted = alertKinds.filter((kind) => !alerts.includes(kind))
  await ctx.db.transaction(async (tx) => {
    await useTouch(ctx, tx, touch, { action: 'alerts.choose', values }, now)
    const chosen = await tx.query(
      // The links in earlier mails, which may have been forwarded, must not silence again who chose mails again.
      `update memberships set payment_mails = $4,
         stop_token = case when payment_mails = 'none' and $4 <> 'none' then gen_random_uuid() else stop_token end,
         muted_alerts = case when role = 'owner' then $3 else muted_alerts end
       where store_id = $1 and member_id = $2 returning store_id`,
      [storeId, touch.session.member.id, muted, payments],
    )
    if (chosen.length === 0) throw new Refusal('not_found')
  })
}

/**
 * Stops the mails about payments of one store to one member. Whoever has the token of these mails may do that and nothing
 * else, so mail programs can offer it without a sign-in. The answer says nothing about member or store.
 */
export async function stopPaymentMails(db: Database, token: string): Promise<void> {
  if (!stopForm.test(token)) throw new Refusal('not_found')
  const stopped = await db.query(
    "update memberships set payment_mails = 'none' where stop_token = $1 returning store_id",
    [token],
  )
  if (stopped.length === 0) throw new Refusal('not_found')
}

const stopForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

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

/** What a member is mailed about a store. */
export type ChosenMails = { readonly muted: readonly string[]; readonly payments: PaymentMails }

export async function listChosenMails(
  db: Database,
  memberId: MemberId,
): Promise<ReadonlyMap<string, ChosenMails>> {
  const found = await db.query<ChosenMails & { storeId: string }>(
    `select m.store_id as "storeId", m.muted_alerts as muted, ${chosenMails} as payments
     from memberships m where m.member_id = $1`,
    [memberId],
  )
  return new Map(found.map(({ storeId, ...chosen }) => [storeId, chosen]))
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
