import type { Payment } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import { Problem, type ProblemCode, type ProblemExtras } from '../../problems.ts'
import { acceptPayment, dismissPayment, notePayment } from './decide.ts'
import * as rows from './decision-rows.ts'

/** What became of a decision: the payment as it is then, or why it was refused. */
export type Outcome =
  | { readonly payment: Payment }
  | {
      readonly problem: {
        readonly code: ProblemCode
        readonly detail: string
        readonly extras: ProblemExtras
      }
    }

const verbs = { accept: acceptPayment, dismiss: dismissPayment, note: notePayment } as const

const decisionsPerRun = 100
/** Far longer than anybody waits for an outcome. */
const outcomesKeptHours = 24
const outcomesPerRun = 5_000

/**
 * Applies the decisions that wait, each in one transaction with its outcome. Returns how many. Any number of processes
 * may run it at once. A decision that fails because of us stays, and does not hold up the others.
 */
export async function applyDecisions(ctx: Context, now: Date): Promise<number> {
  const waiting = await rows.listWaiting(ctx.db, decisionsPerRun)
  const failures: unknown[] = []
  let applied = 0
  for (const id of waiting) {
    try {
      if (await apply(ctx, id, now)) applied++
    } catch (error) {
      failures.push(error)
    }
  }
  if (applied > 0) ctx.db.wakeUps.send('outcomes')
  if (failures.length > 0) throw failures[0]
  return applied
}

async function apply(ctx: Context, id: rows.DecisionId, now: Date): Promise<boolean> {
  try {
    const isApplied = await ctx.db.transaction(async (tx) => {
      const decision = await rows.lockDecision(tx, id)
      if (!decision) return false
      const decide = verbs[decision.kind]
      await rows.writeOutcome(tx, id, { payment: await decide(ctx, tx, decision, now) } satisfies Outcome)
      crashPoint(ctx, 'decide-before-commit')
      return true
    })
    if (isApplied) crashPoint(ctx, 'decide-after-commit')
    return isApplied
  } catch (error) {
    // Not ours to answer: the decision stays, and is tried again.
    if (!(error instanceof Problem) || error.code === 'unavailable') throw error
    const { code, message: detail, extras } = error
    await rows.writeOutcome(ctx.db, id, { problem: { code, detail, extras } } satisfies Outcome)
    return true
  }
}

export async function forgetDecisions(ctx: Context): Promise<void> {
  while ((await rows.deleteApplied(ctx.db, outcomesKeptHours, outcomesPerRun)) === outcomesPerRun);
}
