import assert from 'node:assert/strict'
import type { Actor, Finality, RefundWay } from '@farthing/sdk'
import { decimalsOf } from '../chains/families.ts'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import type { RefundId, StoreId } from '../ids.ts'
import { unitsToText } from '../money.ts'
import { authorizationOf, liveCreditOf } from '../payments/rows.ts'
import { Problem } from '../problems.ts'
import {
  evaluateRefund,
  eventOf,
  isCounted,
  isFinal,
  type Refund,
  type RefundEvent,
  type RefundFacts,
  toWire,
} from './refund.ts'
import { type RefundRow, refundColumns, toRefund } from './rows.ts'

/**
 * The only file that writes a refund: its facts, the status that follows from them, its payment's total and its events.
 *
 * `addRefund` creates one, `changeRefund` adds facts to one whose lock the caller holds. Each writes facts, status and
 * total in one statement, and the event in the same transaction. Only three fields are written elsewhere, because no
 * status depends on them: a refund's idempotency key, the time when a named transaction was last looked up, and, by a
 * trigger on `credits`, that a final refund is watched again because the chain has taken its transfer back.
 */

/** A refund about to be written. Addresses are in stored form. */
export type NewRefund = {
  readonly id: RefundId
  readonly storeId: StoreId
  readonly paymentId: string
  readonly checkoutId: string | null
  readonly network: string
  readonly asset: string
  readonly identity: string
  readonly wallet: string
  /** The payment's own amount. */
  readonly received: bigint
  readonly amount: bigint
  readonly recipient: string | null
  readonly way: RefundWay
  readonly reason: string | null
  readonly actor: Actor
  readonly idempotency: { readonly key: string; readonly bodyHash: string } | null
  readonly now: Date
}

/** The fields that all refunds of a payment share. */
export type RefundBase = Pick<
  NewRefund,
  'storeId' | 'paymentId' | 'checkoutId' | 'network' | 'asset' | 'identity' | 'wallet' | 'received'
>

/**
 * Raises the payment's total and writes the refund in one statement, so two requests at once can't take more than the
 * payment. The total's constraint enforces it too. Returns null if less than the amount is left, or if another store
 * refunds the payment.
 */
export async function addRefund(
  ctx: Context,
  tx: Transaction,
  added: NewRefund,
  event: 'refund.requested' | null,
): Promise<Refund | null> {
  const [row] = await tx.query<RefundRow>(
    `with raised as (
       insert into refund_totals as t (network, asset, identity, payment_id, store_id, amount, reserved)
       select $1, $2, $3, $4, $5, $6::numeric, $7::numeric where $7::numeric <= $6::numeric
       on conflict (network, asset, identity) do update set reserved = t.reserved + excluded.reserved,
         payment_id = excluded.payment_id, store_id = excluded.store_id
         where (t.store_id = excluded.store_id or t.reserved = 0) and t.reserved + excluded.reserved <= t.amount
       returning t.network
     ), added as (
       insert into refunds (id, store_id, payment_id, checkout_id, network, asset, identity, wallet, amount, recipient,
         way, reason, status, version, actor, idempotency_key, body_hash, created_at)
       select $8, $5, $4, $9, $1, $2, $3, $10, $7::numeric, $11, $12, $13, 'REQUESTED', 1, $14, $15, $16, $17
       from raised returning *
     )
     select ${refundColumns} from added r`,
    [
      added.network,
      added.asset,
      added.identity,
      added.paymentId,
      added.storeId,
      added.received.toString(),
      added.amount.toString(),
      added.id,
      added.checkoutId,
      added.wallet,
      added.recipient,
      added.way,
      added.reason,
      JSON.stringify(added.actor),
      added.idempotency?.key ?? null,
      added.idempotency?.bodyHash ?? null,
      added.now,
    ],
  )
  if (!row) return null
  const refund = toRefund(row)
  if (event) await announce(ctx, tx, refund, event, added)
  return refund
}

/** Facts about a refund. Those that are left out stay as they are. */
export type NewFacts = {
  readonly recipient?: string
  /** The payment's nonce that was handed out to be signed; null if none is left. Removes an earlier signature. */
  readonly handOut?: { readonly slot: number; readonly nonce: string } | null
  readonly signedAt?: Date | 'now'
  readonly isCancelAsked?: true
  /** The transaction that the store names; null if it does not prove the refund. */
  readonly named?: string | null
  /** The transfer in the named transaction that proves the refund. */
  readonly transfer?: Proof
  readonly declared?: string
  readonly failure?: string
}

type Proof = { readonly place: number; readonly from: string; readonly at: Date }

type ChangedBy = {
  /** Who asked for the change; null if the chain or a buyer caused it. */
  readonly actor: Actor | null
  readonly now: Date
  /** An event that does not come with a change of status. */
  readonly event?: 'refund.address_updated'
  /**
   * Whether the refund may become COMPLETED. Only `work` may say that money went back (rights/refunds.sql), so every
   * other caller leaves that to `watch.ts`.
   */
  readonly mayComplete?: boolean
}

/**
 * Adds facts to a refund, computes its status from all facts, and writes both, with the total if the refund has ended
 * and with the event of the status change. Writes nothing if nothing changes. The caller holds the refund's lock, so a
 * version mismatch is a bug.
 */
export async function changeRefund(
  ctx: Context,
  tx: Transaction,
  before: Refund,
  added: NewFacts,
  by: ChangedBy,
): Promise<Refund> {
  assert(isCounted(before.status), `${before.id} has ended and cannot change`)
  const after = addFacts(before, added, by.now)
  const findings = after.nonce === null ? nothingFound : await readFindings(tx, after)
  const outcome = concludeFrom(after, findings, by.mayComplete ?? false)
  if (Object.keys(added).length === 0 && !by.event && !differs(before, outcome)) return before
  const moved = outcome.status === before.status ? null : eventOf(before.status, outcome.status)
  assert(!moved || !by.event, 'a change of status has its own event')
  const refund = await writeChange(tx, before, added, outcome, by)
  const event = by.event ?? moved
  if (event) await announce(ctx, tx, refund, event, by)
  if (isFinal(refund) && !isFinal(before)) await announce(ctx, tx, refund, 'refund.finalized', by)
  return refund
}

async function announce(
  ctx: Context,
  tx: Transaction,
  refund: Refund,
  event: RefundEvent,
  { actor, now }: Pick<ChangedBy, 'actor' | 'now'>,
): Promise<void> {
  await appendEvent(
    tx,
    newEvent(ctx, refund.storeId, actor, { type: event, data: { refund: toWire(refund) } }, now),
  )
}

/** The refund with the new facts, to evaluate it. The database's clock says when they were written. */
function addFacts(refund: Refund, added: NewFacts, now: Date): Refund {
  const { handOut, signedAt, named } = added
  return {
    ...refund,
    recipient: added.recipient ?? refund.recipient,
    slot: handOut === undefined ? refund.slot : (handOut?.slot ?? null),
    nonce: handOut === undefined ? refund.nonce : (handOut?.nonce ?? null),
    signedAt: signedAt === 'now' ? now : (signedAt ?? (handOut === undefined ? refund.signedAt : null)),
    cancelAskedAt: added.isCancelAsked ? now : refund.cancelAskedAt,
    transaction: named === undefined ? refund.transaction : named,
    position: added.transfer?.place ?? refund.position,
    declared: added.declared ?? refund.declared,
    failure: added.failure ?? refund.failure,
  }
}

/** The consequences of a refund's facts. */
type Outcome = Pick<Refund, 'status' | 'transaction' | 'finality' | 'failure' | 'isWatched'>

function concludeFrom(
  refund: Refund,
  { authorization, reason, transfer }: Findings,
  mayComplete: boolean,
): Outcome {
  const { way, nonce, position } = refund
  const isProven = way === 'self-sent' && position !== null
  const status = evaluateRefund({
    status: refund.status,
    way,
    isSigned: refund.signedAt !== null,
    isCancelAsked: refund.cancelAskedAt !== null,
    isDeclared: refund.declared !== null,
    isNamed: way === 'self-sent' && refund.transaction !== null,
    // A transfer on the chain was certainly sent, even if a restored database has forgotten its authorization.
    authorization: authorization ?? (transfer ? 'sent' : null),
    isTransferred: mayComplete && (isProven || transfer?.counts === true),
  })
  const transaction = transfer?.transaction ?? (way === 'self-sent' ? refund.transaction : null)
  const shown = status === 'COMPLETED' ? (transfer?.finality ?? null) : null
  const finality = isProven ? 'finalized' : shown
  const isDone =
    status === 'COMPLETED' ? finality === 'finalized' : !isCounted(status) || status === 'DECLARED'
  return {
    status,
    transaction,
    finality,
    // The reason is kept while the refund is not sent yet, and if it has failed.
    failure:
      status === 'FAILED' || status === 'SIGNED' ? reason : status === 'REQUESTED' ? refund.failure : null,
    isWatched: !isDone && (nonce !== null || transaction !== null),
  }
}

function differs(refund: Refund, outcome: Outcome): boolean {
  return (
    outcome.status !== refund.status ||
    outcome.transaction !== refund.transaction ||
    outcome.finality !== refund.finality ||
    outcome.failure !== refund.failure ||
    outcome.isWatched !== refund.isWatched
  )
}

/** Whether the chain and the lanes have changed facts that the refund's row must show. */
export function isOutdated(refund: Refund, findings: Findings): boolean {
  return differs(refund, concludeFrom(refund, findings, true))
}

/** Sets only the columns that change, because `serve` has no right to write those that report a refund as paid. */
async function writeChange(
  tx: Transaction,
  { id, version }: Refund,
  added: NewFacts,
  outcome: Outcome,
  { actor, mayComplete }: ChangedBy,
): Promise<Refund> {
  const { handOut, signedAt, named, transfer, declared } = added
  const hasEnded = !isCounted(outcome.status)
  const values: unknown[] = [id, version]
  const to = (value: unknown) => `$${values.push(value)}`
  const sets = [
    `status = ${to(outcome.status)}, version = r.version + 1, transaction_hash = ${to(outcome.transaction)}`,
    `failure = ${to(outcome.failure)}, is_watched = ${to(outcome.isWatched)}`,
    `ended_at = ${hasEnded ? 'clock()' : 'null'}`,
  ]
  if (added.recipient !== undefined) sets.push(`recipient = ${to(added.recipient)}`)
  if (handOut !== undefined)
    sets.push(`slot = ${to(handOut?.slot ?? null)}, nonce = ${to(handOut?.nonce ?? null)}`)
  if (signedAt) sets.push(`signed_at = ${signedAt === 'now' ? 'clock()' : to(signedAt)}`)
  else if (handOut !== undefined) sets.push('signed_at = null')
  if (added.isCancelAsked) sets.push('cancel_asked_at = clock()')
  if (named) sets.push('named_at = clock(), looked_at = null')
  if (declared !== undefined) sets.push(`declared = ${to(declared)}`)
  if (named || declared !== undefined) sets.push(`said_by = ${to(JSON.stringify(actor))}`)
  if (transfer)
    sets.push(
      `position = ${to(transfer.place)}, sent_from = ${to(transfer.from)}, sent_at = ${to(transfer.at)}`,
    )
  if (transfer || mayComplete) sets.push(`finality = ${to(outcome.finality)}`)
  if (mayComplete)
    sets.push(
      `completed_at = ${outcome.status === 'COMPLETED' ? 'coalesce(r.completed_at, clock())' : 'null'}`,
    )
  const lowered = `, lowered as (
       update refund_totals t set reserved = t.reserved - c.amount from changed c
       where t.network = c.network and t.asset = c.asset and t.identity = c.identity
     )`
  const [row] = await tx.query<RefundRow>(
    `with changed as (
       update refunds r set ${sets.join(', ')} where r.id = $1 and r.version = $2 returning r.*
     )${hasEnded ? lowered : ''}
     select ${refundColumns} from changed r`,
    values,
  )
  assert(row, `${id} was changed by a transaction that does not hold its lock`)
  return toRefund(row)
}

export function refundedElsewhere(): Problem {
  return new Problem(
    'payment_refunded',
    'Another store has registered the same wallet and has refunded this payment.',
  )
}

/** Explains why `addRefund` added nothing. After a restore the payment may have another id, with refunds of its own. */
export async function explainUnwritten(tx: Transaction, base: RefundBase): Promise<Problem> {
  const { storeId, reserved } = (await readTotal(tx, base)) ?? { storeId: base.storeId, reserved: 0n }
  if (storeId !== base.storeId && reserved > 0n) return refundedElsewhere()
  return exceeds(base.network, base.asset, base.received - reserved)
}

export function exceeds(network: string, asset: string, left: bigint): Problem {
  const detail =
    left > 0n
      ? `${unitsToText(left, decimalsOf(network, asset))} is left of the payment.`
      : 'Nothing is left of the payment: earlier refunds have taken all of it.'
  return new Problem('refund_exceeds_payment', detail, {
    members: { left: (left > 0n ? left : 0n).toString() },
  })
}

/** How much of a payment refunds have taken, found by the payment's identity; null if it has had none. */
async function readTotal(
  tx: Transaction,
  { network, asset, identity }: Pick<NewRefund, 'network' | 'asset' | 'identity'>,
): Promise<{ readonly storeId: StoreId; readonly reserved: bigint } | null> {
  const [row] = await tx.query<{ store_id: StoreId; reserved: string }>(
    'select store_id, reserved from refund_totals where network = $1 and asset = $2 and identity = $3',
    [network, asset, identity],
  )
  return row ? { storeId: row.store_id, reserved: BigInt(row.reserved) } : null
}

/** The state of a refund's nonce, which lanes, followers and proofs of death write without knowing of refunds. */
export type Findings = {
  readonly authorization: RefundFacts['authorization']
  /** Why its authorization was refused or died. */
  readonly reason: string | null
  /** The refund's own transfer on the chain. It counts once enough nodes report it. */
  readonly transfer: {
    readonly transaction: string
    readonly finality: Finality
    readonly counts: boolean
  } | null
}

/** For a refund for which no nonce was handed out. */
const nothingFound: Findings = { authorization: null, reason: null, transfer: null }

type FindingsRow = {
  state: Findings['authorization']
  authorization_reason: string | null
  transfer_hash: string | null
  transfer_finality: Finality
  counts: boolean
}

const findingsColumns = `a.state, a.reason as authorization_reason, k.transaction_hash as transfer_hash, k.counts,
  case when k.finalized_at is not null then 'finalized' when k.safe_at is not null then 'safe'
    when k.network is not null then 'included' end as transfer_finality`

/**
 * SQL: the authorization `a` of a refund `r`, and its transfer `k`. A nonce that expired unused may have been handed
 * out again for another refund; then the transfer belongs to that one.
 */
const findingsJoins = `
  left join lateral (select r.network, r.asset, r.wallet as payer, r.nonce) key on r.nonce is not null
  left join ${authorizationOf('key')} on a.refund_id = r.id
  left join ${liveCreditOf('key')} on k.pay_to = r.recipient and k.amount = r.amount
    and not exists (select 1 from authorizations o where o.network = r.network and o.asset = r.asset
      and o.payer = r.wallet and o.nonce = r.nonce and o.refund_id <> r.id)`

function toFindings(row: FindingsRow): Findings {
  const { transfer_hash: transaction, transfer_finality: finality, counts } = row
  return {
    authorization: row.state,
    reason: row.authorization_reason,
    transfer: transaction === null ? null : { transaction, finality, counts },
  }
}

/** Call this under the refund's lock: every transaction that changes its status holds it. */
async function readFindings(
  tx: Transaction,
  { id, network, asset, wallet, nonce, recipient, amount }: Refund,
): Promise<Findings> {
  const [row] = await tx.query<FindingsRow>(
    `select ${findingsColumns}
     from (select $1::text as id, $2::text as network, $3::text as asset, $4::text as wallet, $5::text as nonce,
       $6::text as recipient, $7::numeric as amount) r ${findingsJoins}`,
    [id, network, asset, wallet, nonce, recipient, amount.toString()],
  )
  return row ? toFindings(row) : nothingFound
}

/** The watched refunds after this id, in order. */
export async function listWatched(
  db: Database,
  after: string,
  limit: number,
): Promise<{ readonly refund: Refund; readonly findings: Findings }[]> {
  const rows = await db.query<RefundRow & FindingsRow>(
    `select ${refundColumns}, ${findingsColumns} from refunds r ${findingsJoins}
     where r.is_watched and r.id > $1 order by r.id limit $2`,
    [after, limit],
  )
  return rows.map(({ state, authorization_reason, transfer_hash, transfer_finality, counts, ...refund }) => ({
    refund: toRefund(refund),
    findings: toFindings({ state, authorization_reason, transfer_hash, transfer_finality, counts }),
  }))
}
