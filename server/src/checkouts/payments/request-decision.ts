import type { Actor, Payment } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import { openLook } from '../../database/look.ts'
import { isId, newId, type StoreId } from '../../ids.ts'
import { toPayment } from '../../payments/credits/credit.ts'
import { readPayment } from '../../payments/credits/store-rows.ts'
import { Problem } from '../../problems.ts'
import type { Outcome } from './apply-decisions.ts'
import { type Decision, type DecisionId, insertDecision, listOutcomes } from './decision-rows.ts'

/**
 * `serve` cannot decide about payments: whoever takes it over must not be able to write what a checkout's status is
 * computed from. It hands the store's decision to `work` as a row, and waits for what becomes of it. Idempotent: asking
 * again while it waits asks for the same, and afterwards changes nothing.
 */
export type RequestDecision = (
  storeId: StoreId,
  actor: Actor,
  asked: Pick<Decision, 'paymentId' | 'kind' | 'checkoutId'>,
  now: Date,
) => Promise<Decided>

export type Decided = {
  /** As it stands after the decision, or before it if the decision still waits. */
  readonly payment: Payment
  readonly isApplied: boolean
}

/** Long enough for `work` on a busy machine, shorter than any client's patience. */
const patienceMs = 5_000
/** In case a wake-up was lost. */
const lookEveryMs = 250
/** Every payment that is settled wakes us, and few of them are decisions. */
const spacingMs = 50

type Waiter = { readonly id: DecisionId; readonly done: (outcome: Outcome | null) => void }

/** All who wait in a process share one query. */
export function openDecisions(ctx: Context): RequestDecision {
  const { db } = ctx
  const waiters = new Set<Waiter>()
  const shared = openLook(db.wakeUps, {
    channel: 'outcomes',
    everyMs: lookEveryMs,
    spacingMs,
    now: ctx.now,
    isNeeded: () => waiters.size > 0,
    async look() {
      const outcomes = await listOutcomes<Outcome>(
        db,
        Array.from(waiters, ({ id }) => id),
      )
      for (const waiter of [...waiters]) {
        const outcome = outcomes.get(waiter.id)
        if (outcome) waiter.done(outcome)
      }
    },
    onError: (error) =>
      ctx.log.warn({ err: error }, 'could not read what became of decisions; trying again within 250 ms'),
  })

  const waitForOutcome = (id: DecisionId): Promise<Outcome | null> =>
    new Promise((resolve) => {
      const timeout = setTimeout(() => waiter.done(null), patienceMs)
      const waiter: Waiter = {
        id,
        done(outcome) {
          clearTimeout(timeout)
          waiters.delete(waiter)
          resolve(outcome)
        },
      }
      waiters.add(waiter)
      shared.begin()
      db.wakeUps.send('decisions')
    })

  return async (storeId, actor, asked, now) => {
    const payment = isId('pay', asked.paymentId) ? await readPayment(db, storeId, asked.paymentId) : null
    if (!payment) throw new Problem('not_found', 'No such payment.')
    if (asked.checkoutId !== null && !isId('ch', asked.checkoutId))
      throw new Problem('not_found', 'No such checkout.')
    const id = newId('dec', ctx.config.cell, now)
    const outcome = await waitForOutcome(
      await insertDecision(db, { ...asked, id, storeId, actor, createdAt: now }),
    )
    if (outcome === null) return { payment: toPayment(payment), isApplied: false }
    if ('payment' in outcome) return { payment: outcome.payment, isApplied: true }
    const { code, detail, extras } = outcome.problem
    throw new Problem(code, detail, extras)
  }
}
