import type { Actor, Payment } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { openWaiters } from '../../database/waiters.ts'
import { isId, newId, type StoreId } from '../../ids.ts'
import { toPayment } from '../../payments/credits/credit.ts'
import { readPayment } from '../../payments/credits/store-payments.ts'
import { Problem } from '../../problems.ts'
import { readCheckout } from '../rows.ts'
import type { Outcome } from './apply-decisions.ts'
import { checkNote, type Decision, type DecisionId } from './decide.ts'

/**
 * `serve` does not decide about payments: a thief who takes it over must not be able to write the facts from which
 * statuses are computed. It gives the store's decision to `work` as a row and waits for the outcome. Idempotent:
 * repeating a request that still waits adds no second decision, and repeating one that was applied changes nothing.
 */
type RequestDecision = (
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  asked: Pick<Decision, 'paymentId' | 'kind' | 'checkoutId'> & { readonly note?: string | null },
  now: Date,
) => Promise<Decided>

type Decided = {
  /** The payment after the decision, or before it while the decision waits. */
  readonly payment: Payment
  readonly isApplied: boolean
}

/** Long enough for `work` on a busy machine, shorter than any client's patience. */
const patienceMs = 5_000
/** Per store: as many as `work` applies in one run, so a busy store is refused only while `work` is behind. */
const waitingMax = 100
const pollMs = 250
/** Every settled payment also wakes us, and few wake-ups are about decisions. */
const spacingMs = 50

/**
 * Decisions are written with the caller's context. Their outcomes are read with `dbOf(storeId)`, because the console
 * uses a separate database handle for each store.
 */
export function openDecisions(
  ctx: Context,
  dbOf: (storeId: StoreId) => Database = () => ctx.db,
): RequestDecision {
  const waiters = openWaiters<{ readonly id: DecisionId; readonly db: Database }, Outcome>(ctx.db.wakeUps, {
    channel: 'outcomes',
    everyMs: pollMs,
    spacingMs,
    now: ctx.now,
    async find(waiting) {
      const outcomes = new Map<DecisionId, Outcome>()
      for (const [db, asked] of Map.groupBy(waiting, (each) => each.db)) {
        const ids = asked.map(({ id }) => id)
        for (const { id, outcome } of await listOutcomes(db, ids)) outcomes.set(id, outcome)
      }
      return waiting.map(({ id }) => outcomes.get(id) ?? null)
    },
    onError: (error) =>
      ctx.log.warn({ err: error }, 'could not read the outcomes of decisions; trying again within 250 ms'),
  })

  return async ({ db }, storeId, actor, asked, now) => {
    const { note = null } = asked
    checkNote(note)
    const payment = isId('pay', asked.paymentId) ? await readPayment(db, storeId, asked.paymentId) : null
    if (!payment) throw new Problem('not_found', 'No such payment.')
    if (asked.checkoutId !== null && !(await isOwn(db, storeId, asked.checkoutId)))
      throw new Problem('not_found', 'No such checkout.')
    const id = await insertDecision(
      db,
      { ...asked, note, id: newId('dec', ctx.config.cell, now), storeId, actor, createdAt: now },
      waitingMax,
    )
    if (id === null) {
      throw new Problem('rate_limited', `${waitingMax} decisions of this store are waiting to be applied.`, {
        retryAfterSeconds: patienceMs / 1_000,
      })
    }
    const waitingDb = dbOf(storeId)
    waitingDb.wakeUps.send('decisions')
    const outcome = await waiters.wait({ id, db: waitingDb }, patienceMs)
    if (outcome === null) return { payment: toPayment(payment), isApplied: false }
    if ('payment' in outcome) return { payment: outcome.payment, isApplied: true }
    const { code, detail, extras } = outcome.problem
    throw new Problem(code, detail, extras)
  }
}

/** `work` checks this too, but only when it applies the decision. Until then, made-up ids would fill the queue. */
async function isOwn(db: Database, storeId: StoreId, checkoutId: string): Promise<boolean> {
  return isId('ch', checkoutId) && (await readCheckout(db, storeId, checkoutId)) !== null
}

/**
 * Returns the decision's id. If the same decision already waits, returns the id of that one, the last note counts, and it
 * is held back no longer. Null if `waitingMax` other decisions of the store are waiting.
 */
export async function insertDecision(
  db: Database,
  decision: Decision,
  waitingMax: number,
): Promise<DecisionId | null> {
  const [row] = await db.query<{ id: DecisionId }>(
    `insert into decisions as d (id, store_id, payment_id, kind, checkout_id, actor, created_at, note)
     select $1, $2, $3, $4, $5, $6, $7, $8
     where (select count(*) from (select 1 from decisions where store_id = $2 and decided_at is null and due_at is null
         limit $9) w) < $9
       or exists (select 1 from decisions where payment_id = $3 and store_id = $2 and kind = $4
         and coalesce(checkout_id, '') = coalesce($5, '') and decided_at is null)
     on conflict (payment_id, store_id, kind, coalesce(checkout_id, '')) where decided_at is null
       do update set note = case when d.kind = 'note' then excluded.note else coalesce(excluded.note, d.note) end,
         actor = excluded.actor, due_at = null, session_id = null
     returning id`,
    [
      decision.id,
      decision.storeId,
      decision.paymentId,
      decision.kind,
      decision.checkoutId,
      JSON.stringify(decision.actor),
      decision.createdAt,
      decision.note,
      waitingMax,
    ],
  )
  return row?.id ?? null
}

/** The outcomes of those decisions that were applied. */
export async function listOutcomes(
  db: Database,
  ids: readonly DecisionId[],
): Promise<{ readonly id: DecisionId; readonly outcome: Outcome }[]> {
  return await db.query('select id, outcome from decisions where id = any($1) and decided_at is not null', [
    ids,
  ])
}
