import type { Actor } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { isId, newId, type SessionId, type StoreId } from '../../ids.ts'
import { isUndecided, readPayment, readUndecided } from '../../payments/credits/store-payments.ts'
import { Problem, type ProblemCode } from '../../problems.ts'
import { readCheckout } from '../rows.ts'
import { checkNote } from './decide.ts'

/**
 * Members' decisions are held back in the queue of `work` for a few seconds, in which any member who may decide can undo
 * them. Undoing deletes the row, so either it is undone or it is applied. Until then the payment is as it was.
 */

/** Long enough to see what one did, shorter than anybody waits for an order to be paid. */
export const undoSeconds = 10
/** Per store. Twice what one form can put aside, and still applied within seconds. */
const heldMax = 500
/** How many payments one form puts aside. */
export const togetherMax = 200
/**
 * A decided payment keeps its place in the inbox for so long. A decision that was refused is told for as long as `work`
 * keeps it: a day.
 */
const shownMinutes = 60

type Decider = { readonly actor: Actor; readonly sessionId: SessionId }

/**
 * Accepts a payment for a checkout, or puts it aside, unless that is undone in time. The same decision twice is one. Says
 * whose it is: `theirs` stands or falls with another member, session or key, which the member must know.
 */
export async function holdDecision(
  ctx: Context,
  storeId: StoreId,
  by: Decider,
  asked: {
    readonly kind: 'accept' | 'dismiss'
    readonly paymentId: string
    readonly checkoutId: string | null
    readonly note: string | null
  },
  now: Date,
): Promise<'held' | 'theirs'> {
  const { kind, paymentId, note } = asked
  checkNote(note)
  const payment = isId('pay', paymentId) ? await readPayment(ctx.db, storeId, paymentId) : null
  if (!payment) throw new Problem('not_found', 'No such payment.')
  if (!isUndecided(payment)) throw new Problem('payment_not_open', 'The payment has been decided about.')
  if (!payment.mayDecide) throw new Problem('wallet_unproven', 'Another store has registered the wallet.')
  const checkoutId = kind === 'dismiss' ? null : (asked.checkoutId ?? payment.checkoutId ?? '')
  if (checkoutId !== null) await refusePaid(ctx.db, storeId, checkoutId)
  const held = await insertHeld(ctx, storeId, by, { kind, paymentIds: [paymentId], checkoutId, note }, now)
  if (held.length > 0) return 'held'
  const waiting = await readWaiting(ctx.db, storeId, paymentId)
  if (waiting?.kind !== kind || waiting.checkoutId !== checkoutId)
    throw new Problem('payment_not_open', 'Another decision about the payment is waiting.')
  return waiting.sessionId === by.sessionId ? 'held' : 'theirs'
}

/** Puts several payments aside together. Those that another decision waits for are left out. */
export async function holdDismissals(
  ctx: Context,
  storeId: StoreId,
  by: Decider,
  asked: { readonly paymentIds: readonly string[]; readonly note: string | null },
  now: Date,
): Promise<void> {
  checkNote(asked.note)
  const paymentIds = asked.paymentIds.slice(0, togetherMax)
  if (paymentIds.length > 0)
    await insertHeld(ctx, storeId, by, { ...asked, kind: 'dismiss', paymentIds, checkoutId: null }, now)
}

/** `work` checks this too. Here it spares the member ten seconds of a decision that cannot be. */
async function refusePaid(db: Database, storeId: StoreId, checkoutId: string): Promise<void> {
  const found = isId('ch', checkoutId) ? await readCheckout(db, storeId, checkoutId) : null
  if (!found) throw new Problem('not_found', 'No such checkout.')
  if (found.checkout.status === 'COMPLETED')
    throw new Problem('already_paid', 'The checkout is already paid.')
  if (found.checkout.status === 'PROCESSING')
    throw new Problem('payment_in_progress', 'A payment is being settled.')
}

/** Returns the payments that no other decision waits for. */
async function insertHeld(
  ctx: Context,
  storeId: StoreId,
  { actor, sessionId }: Decider,
  asked: {
    readonly kind: 'accept' | 'dismiss'
    readonly paymentIds: readonly string[]
    readonly checkoutId: string | null
    readonly note: string | null
  },
  now: Date,
): Promise<readonly string[]> {
  const { kind, paymentIds, checkoutId, note } = asked
  const ids = paymentIds.map(() => newId('dec', ctx.config.cell, now))
  const [{ count } = { count: 0 }] = await ctx.db.query<{ count: number }>(
    `select count(*)::integer as count from (select 1 from decisions
       where store_id = $1 and decided_at is null and due_at is not null limit $2) waiting`,
    [storeId, heldMax],
  )
  if (count + ids.length > heldMax) {
    throw new Problem('rate_limited', `At most ${heldMax} decisions of a store are held back.`, {
      retryAfterSeconds: undoSeconds,
    })
  }
  const rows = await ctx.db.query<{ paymentId: string }>(
    `insert into decisions (id, store_id, payment_id, kind, checkout_id, actor, created_at, note, due_at, together, session_id)
     select i.id, $1, i.payment_id, $4, $5, $6, clock(), $7, clock() + make_interval(secs => $8), $9, $10
     from unnest($2::text[], $3::text[]) as i (id, payment_id)
     on conflict do nothing returning payment_id as "paymentId"`,
    [storeId, ids, paymentIds, kind, checkoutId, JSON.stringify(actor), note, undoSeconds, ids[0], sessionId],
  )
  return rows.map(({ paymentId }) => paymentId)
}

type Waiting = {
  readonly kind: string
  readonly checkoutId: string | null
  /** Null if a key has decided. */
  readonly sessionId: SessionId | null
}

async function readWaiting(db: Database, storeId: StoreId, paymentId: string): Promise<Waiting | null> {
  const [row] = await db.query<Waiting>(
    `select kind, checkout_id as "checkoutId", session_id as "sessionId" from decisions
     where store_id = $1 and payment_id = $2 and decided_at is null and kind <> 'note' limit 1`,
    [storeId, paymentId],
  )
  return row ?? null
}

/**
 * Undoes the decisions that were made together. `tooLate`: `work` has applied them, or an API key has decided the same.
 * `nothing`: they are gone, and what was decided since then stays; `undone` says that nothing is decided.
 */
export async function undoDecisions(
  { db }: Context,
  storeId: StoreId,
  { together, paymentId }: { readonly together: string; readonly paymentId: string },
): Promise<'undone' | 'undonePartly' | 'tooLate' | 'nothing'> {
  const undone = await db.query(
    `delete from decisions where store_id = $1 and together = $2 and decided_at is null and due_at is not null
     returning id`,
    [storeId, together],
  )
  const left = await db.query('select id from decisions where store_id = $1 and together = $2', [
    storeId,
    together,
  ])
  if (left.length > 0) return undone.length > 0 ? 'undonePartly' : 'tooLate'
  if (undone.length > 0) return 'undone'
  const [open, waiting] = await Promise.all([
    readUndecided(db, storeId, paymentId),
    readWaiting(db, storeId, paymentId),
  ])
  return open && !waiting ? 'undone' : 'nothing'
}

/** A member's last decision about a payment. */
export type Held = {
  readonly paymentId: string
  readonly kind: 'accept' | 'dismiss'
  /** Of the checkout that it was accepted for: see `nameOf`. */
  readonly checkoutName: string | null
  readonly together: string
  /** Whether other payments were decided about together with it. */
  readonly isOfSeveral: boolean
  /** The member who decided, or the key that decided the same meanwhile. */
  readonly actor: Actor
  /** `refused`: why `work` did not apply it. */
  readonly state: 'waiting' | 'applied' | 'refused'
  /** Whether it can be undone. */
  readonly isHeldBack: boolean
  readonly refused: ProblemCode | null
  readonly isOld: boolean
  /** What was paid. Null if the payment was deleted. */
  readonly paid: { readonly network: string; readonly asset: string; readonly amount: string } | null
}

/** What members decided lately, and what is still held back, by payment. */
export async function listHeld(db: Database, storeId: StoreId): Promise<Map<string, Held>> {
  const rows = await db.query<Held>(
    `select distinct on (d.payment_id) d.payment_id as "paymentId", d.kind, d.together, d.actor,
       coalesce(case when starts_with(c.order_id, c.link_id) then c.description end, c.order_id, d.checkout_id)
         as "checkoutName",
       count(*) over (partition by d.together) > 1 as "isOfSeveral",
       case when d.decided_at is null then 'waiting' when d.outcome->'problem' is null then 'applied'
         else 'refused' end as state, d.outcome->'problem'->>'code' as refused,
       d.decided_at is null and d.due_at is not null as "isHeldBack", not d.is_new as "isOld",
       (select json_build_object('network', k.network, 'asset', k.asset, 'amount', k.amount::text)
         from credits k where k.payment_id = d.payment_id limit 1) as paid
     from (select d.*, d.created_at > clock() - make_interval(mins => $2) as is_new from decisions d
         where store_id = $1 and together is not null and (decided_at is null or outcome->'problem' is not null
           or created_at > clock() - make_interval(mins => $2))
       order by created_at desc limit $3) d
     left join checkouts c on c.id = d.checkout_id and c.store_id = $1
     order by d.payment_id, d.created_at desc, d.id desc`,
    [storeId, shownMinutes, 2 * heldMax],
  )
  return new Map(rows.map((row) => [row.paymentId, row]))
}

/** How many payments are decided about, but for the wait. */
export async function countHeld(db: Database, storeId: StoreId): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*)::integer as count from decisions
     where store_id = $1 and decided_at is null and due_at is not null`,
    [storeId],
  )
  return row?.count ?? 0
}
