import { setTimeout as wait } from 'node:timers/promises'
import type { Actor, Payment } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import { isId, newId, type StoreId } from '../../ids.ts'
import { toPayment } from '../../payments/credits/credit.ts'
import { readPayment } from '../../payments/credits/store-rows.ts'
import { Problem } from '../../problems.ts'
import type { Outcome } from './apply-decisions.ts'
import { type Decision, insertDecision, readOutcome } from './decision-rows.ts'

/**
 * `serve` cannot decide about payments: whoever takes it over must not be able to write what a checkout's status is
 * computed from. It hands the store's decision to `work` as a row, and waits for what becomes of it.
 */

/** Long enough for `work` on a busy machine, shorter than any client's patience. */
const patienceMs = 5_000
/** In case a wake-up was lost. */
const lookEveryMs = 250

export type Decided = {
  /** As it stands after the decision, or before it if the decision still waits. */
  readonly payment: Payment
  readonly isApplied: boolean
}

/** Idempotent: asking again while it waits asks for the same, and afterwards changes nothing. */
export async function requestDecision(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  asked: Pick<Decision, 'paymentId' | 'kind' | 'checkoutId'>,
  now: Date,
): Promise<Decided> {
  const { db } = ctx
  const payment = isId('pay', asked.paymentId) ? await readPayment(db, storeId, asked.paymentId) : null
  if (!payment) throw new Problem('not_found', 'No such payment.')
  const id = await insertDecision(db, {
    ...asked,
    id: newId('dec', ctx.config.cell, now),
    storeId,
    actor,
    createdAt: now,
  })
  const patience = AbortSignal.timeout(patienceMs)
  const lookAgain = watch(ctx, patience)
  db.wakeUps.send('decisions')
  try {
    while (!patience.aborted) {
      const outcome = await readOutcome<Outcome>(db, id)
      if (outcome && 'problem' in outcome) {
        const { code, detail, extras } = outcome.problem
        throw new Problem(code, detail, extras)
      }
      if (outcome) return { payment: outcome.payment, isApplied: true }
      await lookAgain.wait()
    }
  } finally {
    lookAgain.close()
  }
  return { payment: toPayment(payment), isApplied: false }
}

function watch({ db }: Context, patience: AbortSignal) {
  let wake = () => {}
  const close = db.wakeUps.listen('outcomes', () => wake())
  return {
    close,
    async wait(): Promise<void> {
      const rested = new AbortController()
      wake = () => rested.abort()
      const signal = AbortSignal.any([rested.signal, patience])
      await wait(lookEveryMs, undefined, { signal }).catch(() => {})
    },
  }
}
