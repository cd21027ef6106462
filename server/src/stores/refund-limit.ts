import type { Context } from '../context.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import type { StoreId } from '../ids.ts'
import { actorOfSession } from '../members/announce.ts'
import { type Touch, useTouch } from '../members/confirm.ts'
import { lockFor } from '../members/invite.ts'
import { Refusal } from '../members/refusal.ts'
import { lockStore } from './change.ts'
import { writeRefundLimit } from './rows.ts'
import { storeToEvent } from './store.ts'

/** Whole tokens, or hundredths of them: more than any store takes in a day fits. */
const form = /^(0|[1-9]\d{0,8})(\.\d{1,2})?$/

/** An owner says what each manager may refund within 24 hours. */
export async function setRefundLimit(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  limit: string,
  now: Date,
): Promise<void> {
  if (!form.test(limit)) throw new Refusal('invalid')
  await ctx.db.transaction(async (tx) => {
    await lockFor(tx, storeId, touch.session.member.id, 'members:write')
    await useTouch(ctx, tx, touch, 'refund.limit', { storeId, limit }, now)
    const store = await lockStore(tx, storeId)
    if (store.managerRefundLimit === limit) return
    await writeRefundLimit(tx, storeId, limit)
    const data = { store: storeToEvent({ ...store, managerRefundLimit: limit }) }
    await appendEvent(tx, newEvent(ctx, storeId, actorOfSession(touch.session), 'store.updated', data, now))
  })
}
