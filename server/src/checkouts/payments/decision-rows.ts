import type { Actor } from '@farthing/sdk'
import type { Database, Transaction } from '../../database/db.ts'
import type { Queue } from '../../events/rows.ts'
import type { Id, StoreId } from '../../ids.ts'

export type DecisionId = Id<'dec'>

/** What a store has decided about a payment. */
export type Decision = {
  readonly id: DecisionId
  readonly storeId: StoreId
  readonly paymentId: string
  readonly kind: 'accept' | 'dismiss' | 'note'
  /** The checkout to accept it for; null for the one that it belongs to. */
  readonly checkoutId: string | null
  /** What the store notes about it: with `dismiss` null leaves the note as it is, with `note` it removes it. */
  readonly note: string | null
  readonly actor: Actor
  readonly createdAt: Date
}

type DecisionRow = {
  id: DecisionId
  store_id: StoreId
  payment_id: string
  kind: Decision['kind']
  checkout_id: string | null
  note: string | null
  actor: Actor
  created_at: Date
}

/**
 * Returns its id: that of the same decision if one is waiting already, of which the last note counts. Null if so many
 * others of the store are waiting.
 */
export async function insertDecision(
  db: Database,
  decision: Decision,
  waitingMax: number,
): Promise<DecisionId | null> {
  const [row] = await db.query<{ id: DecisionId }>(
    `insert into decisions as d (id, store_id, payment_id, kind, checkout_id, actor, created_at, note)
     select $1, $2, $3, $4, $5, $6, $7, $8
     where (select count(*) from (select 1 from decisions where store_id = $2 and decided_at is null limit $9) w) < $9
       or exists (select 1 from decisions where payment_id = $3 and store_id = $2 and kind = $4
         and coalesce(checkout_id, '') = coalesce($5, '') and decided_at is null)
     on conflict (payment_id, store_id, kind, coalesce(checkout_id, '')) where decided_at is null
       do update set note = case when d.kind = 'note' then excluded.note else coalesce(excluded.note, d.note) end,
         actor = excluded.actor
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

/** The outcomes of those that were applied. */
export async function listOutcomes<Outcome>(
  db: Database,
  ids: readonly DecisionId[],
): Promise<Map<DecisionId, Outcome>> {
  const rows = await db.query<{ id: DecisionId; outcome: Outcome }>(
    'select id, outcome from decisions where id = any($1) and decided_at is not null',
    [ids],
  )
  return new Map(rows.map(({ id, outcome }) => [id, outcome]))
}

/** The decisions that wait: the oldest of each store, then the second of each, and so on. */
export async function listWaiting(db: Database, limit: number): Promise<DecisionId[]> {
  const rows = await db.query<{ id: DecisionId }>(
    `select id from (select id, row_number() over (partition by store_id order by id) as turn
       from decisions where decided_at is null) waiting
     order by turn, id limit $1`,
    [limit],
  )
  return rows.map(({ id }) => id)
}

/** Null if it was applied meanwhile, or another process is at it. */
export async function lockDecision(tx: Transaction, id: DecisionId): Promise<Decision | null> {
  const [row] = await tx.query<DecisionRow>(
    `select id, store_id, payment_id, kind, checkout_id, note, actor, created_at from decisions
     where id = $1 and decided_at is null for no key update skip locked`,
    [id],
  )
  if (!row) return null
  const { store_id, payment_id, checkout_id, created_at, ...rest } = row
  return { ...rest, storeId: store_id, paymentId: payment_id, checkoutId: checkout_id, createdAt: created_at }
}

export async function writeOutcome(
  db: Database | Transaction,
  id: DecisionId,
  outcome: object,
): Promise<void> {
  await db.query(
    'update decisions set decided_at = clock(), outcome = $2 where id = $1 and decided_at is null',
    [id, JSON.stringify(outcome)],
  )
}

/** Deletes decisions that were applied long ago. Returns how many. */
export async function deleteApplied(db: Database, keptHours: number, limit: number): Promise<number> {
  const rows = await db.query(
    `delete from decisions where id in (select id from decisions
       where decided_at < clock() - make_interval(hours => $1) order by decided_at limit $2 for update skip locked)
     returning id`,
    [keptHours, limit],
  )
  return rows.length
}

/** Decisions that `work` has not taken yet. */
export async function measureDecisions(db: Database): Promise<Queue> {
  const [row] = await db.query<Queue>(
    `select count(*)::integer as count, min(created_at) as "oldestAt" from decisions where decided_at is null`,
  )
  return row ?? { count: 0, oldestAt: null }
}
