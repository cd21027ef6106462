import type { Payment } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import type { Database, Transaction } from '../../database/db.ts'
import type { Queue } from '../../events/rows.ts'
import type { SessionId } from '../../ids.ts'
import { holdActingRole } from '../../members/act.ts'
import { mayAct } from '../../members/rights.ts'
import { Problem, type ProblemCode, type ProblemExtras } from '../../problems.ts'
import { acceptPayment, type Decision, type DecisionId, dismissPayment, notePayment } from './decide.ts'

/** The outcome of a decision: the payment after it, or why it was refused. */
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

/** SQL: the decision is to be applied now. Members' decisions are held back for a while. */
const isDue = 'decided_at is null and (due_at is null or due_at <= clock())'

type Waiting = Decision & {
  /** Of a member's decision that was held back. */ readonly sessionId: SessionId | null
}

const decisionsPerRun = 100
/** Far longer than a request waits for an outcome. */
const outcomesKeptHours = 24
const outcomesPerRun = 5_000

/**
 * Applies the decisions that wait, each in one transaction with its outcome. Returns how many. Any number of processes
 * may run it at once. A decision that fails because of us stays in the queue, and does not hold up the others.
 */
export async function applyDecisions(ctx: Context, now: Date): Promise<number> {
  // The oldest of each store, then the second of each, and so on.
  const waiting = await ctx.db.query<{ id: DecisionId }>(
    `select id from (select id, row_number() over (partition by store_id order by id) as place
       from decisions where ${isDue}) waiting
     order by place, id limit $1`,
    [decisionsPerRun],
  )
  const failures: unknown[] = []
  let applied = 0
  for (const { id } of waiting) {
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

async function apply(ctx: Context, id: DecisionId, now: Date): Promise<boolean> {
  try {
    const isApplied = await ctx.db.transaction(async (tx) => {
      const decision = await lockDecision(tx, id)
      if (!decision) return false
      const decide = verbs[decision.kind]
      const outcome = (await isRevoked(tx, decision))
        ? revoked
        : { payment: await decide(ctx, tx, decision, now) }
      await writeOutcome(tx, id, outcome satisfies Outcome)
      crashPoint(ctx, 'decide-before-commit')
      return true
    })
    if (isApplied) crashPoint(ctx, 'decide-after-commit')
    return isApplied
  } catch (error) {
    // Our own failure. The decision stays and is tried again.
    if (!(error instanceof Problem) || error.code === 'unavailable') throw error
    const { code, message: detail, extras } = error
    await writeOutcome(ctx.db, id, { problem: { code, detail, extras } } satisfies Outcome)
    return true
  }
}

/** Deletes decisions that were applied long ago. */
export async function forgetDecisions({ db }: Context): Promise<void> {
  const forget = () =>
    db.query(
      `delete from decisions where id in (select id from decisions
         where decided_at < clock() - make_interval(hours => $1) order by decided_at limit $2 for update skip locked)
       returning id`,
      [outcomesKeptHours, outcomesPerRun],
    )
  while ((await forget()).length === outcomesPerRun);
}

/** Null if it was applied meanwhile, or if another process is applying it. */
async function lockDecision(tx: Transaction, id: DecisionId): Promise<Waiting | null> {
  const [decision] = await tx.query<Waiting>(
    `select id, store_id as "storeId", payment_id as "paymentId", kind, checkout_id as "checkoutId", note, actor,
       created_at as "createdAt",
       session_id as "sessionId"
     from decisions where id = $1 and ${isDue} for no key update skip locked`,
    [id],
  )
  return decision ?? null
}

const revoked: Outcome = {
  problem: {
    code: 'scope_required',
    detail: 'The member may no longer decide, or is signed out.',
    extras: {},
  },
}

/** Whether the member has lost the right to decide, or the session, since they decided. Neither is lost until the commit. */
async function isRevoked(tx: Transaction, { sessionId, storeId }: Waiting): Promise<boolean> {
  if (sessionId === null) return false
  const role = await holdActingRole(tx, sessionId, storeId)
  return role === null || !mayAct(role, 'payments:write')
}

async function writeOutcome(db: Database | Transaction, id: DecisionId, outcome: object): Promise<void> {
  await db.query(
    'update decisions set decided_at = clock(), outcome = $2 where id = $1 and decided_at is null',
    [id, JSON.stringify(outcome)],
  )
}

/** Decisions that `work` has not taken yet. */
export async function measureDecisions(db: Database): Promise<Queue> {
  const [row] = await db.query<Queue>(
    `select count(*)::integer as count, min(coalesce(due_at, created_at)) as "oldestAt" from decisions where ${isDue}`,
  )
  return row ?? { count: 0, oldestAt: null }
}
