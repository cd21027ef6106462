import type { Actor, Payment } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { openPoll } from '../../database/poll.ts'
import { isId, newId, type StoreId } from '../../ids.ts'
import { toPayment } from '../../payments/credits/credit.ts'
import { readPayment } from '../../payments/credits/store-payments.ts'
import { invalid, Problem } from '../../problems.ts'
import { checkText } from '../../stores/check-text.ts'
import { readCheckout } from '../rows.ts'
import type { Outcome } from './apply-decisions.ts'
import { type Decision, type DecisionId, insertDecision, listOutcomes } from './decision-rows.ts'

/**
 * `serve` cannot decide about payments: whoever takes it over must not be able to write what a checkout's status is
 * computed from. It hands the store's decision to `work` as a row, and waits for what becomes of it. Idempotent: asking
 * again while it waits asks for the same, and afterwards changes nothing.
 */
export type RequestDecision = (
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  asked: Pick<Decision, 'paymentId' | 'kind' | 'checkoutId'> & { readonly note?: string | null },
  now: Date,
) => Promise<Decided>

type Decided = {
  /** As it stands after the decision, or before it if the decision still waits. */
  readonly payment: Payment
  readonly isApplied: boolean
}

/** A few sentences. The database refuses longer ones too. */
const noteBytesMax = 1_000
/** Long enough for `work` on a busy machine, shorter than any client's patience. */
const patienceMs = 5_000
/** Of one store: as many as `work` applies in one run, so a store that hurries is refused only while `work` is behind. */
const waitingMax = 100
/** In case a wake-up was lost. */
const lookEveryMs = 250
/** Every payment that is settled wakes us, and few of them are decisions. */
const spacingMs = 50

type Waiter = {
  readonly id: DecisionId
  readonly db: Database
  readonly done: (outcome: Outcome | null) => void
}

/**
 * All who wait in a process share one query. Where each store has a database of its own to see (`dbOf`), each of those
 * has one. The decision itself is written with the context of whoever asks.
 */
export function openDecisions(
  ctx: Context,
  dbOf: (storeId: StoreId) => Database = () => ctx.db,
): RequestDecision {
  const waiters = new Set<Waiter>()
  const shared = openPoll(ctx.db.wakeUps, {
    channel: 'outcomes',
    everyMs: lookEveryMs,
    spacingMs,
    now: ctx.now,
    isNeeded: () => waiters.size > 0,
    async poll() {
      for (const [db, waiting] of Map.groupBy(waiters, (waiter) => waiter.db)) {
        const outcomes = await listOutcomes<Outcome>(
          db,
          waiting.map(({ id }) => id),
        )
        for (const waiter of waiting) {
          const outcome = outcomes.get(waiter.id)
          if (outcome) waiter.done(outcome)
        }
      }
    },
    onError: (error) =>
      ctx.log.warn({ err: error }, 'could not read what became of decisions; trying again within 250 ms'),
  })

  const waitForOutcome = (db: Database, id: DecisionId): Promise<Outcome | null> =>
    new Promise((resolve) => {
      const timeout = setTimeout(() => waiter.done(null), patienceMs)
      const waiter: Waiter = {
        id,
        db,
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

  return async ({ db }, storeId, actor, asked, now) => {
    const { note = null } = asked
    const mistakes = note === null ? [] : checkText('/note', note, noteBytesMax)
    if (mistakes.length > 0) throw invalid(...mistakes)
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
    const outcome = await waitForOutcome(dbOf(storeId), id)
    if (outcome === null) return { payment: toPayment(payment), isApplied: false }
    if ('payment' in outcome) return { payment: outcome.payment, isApplied: true }
    const { code, detail, extras } = outcome.problem
    throw new Problem(code, detail, extras)
  }
}

/** `work` says so too, but only once it is the decision's turn: until then made-up ids would fill the queue. */
async function isOwn(db: Database, storeId: StoreId, checkoutId: string): Promise<boolean> {
  return isId('ch', checkoutId) && (await readCheckout(db, storeId, checkoutId)) !== null
}
