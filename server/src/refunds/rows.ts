import type { Actor, Finality, RefundStatus, RefundWay } from '@farthing/sdk'
import type { Database, Transaction } from '../database/db.ts'
import type { CheckoutId, RefundId, StoreId } from '../ids.ts'
import { authorizationOf, liveCreditOf } from '../payments/rows.ts'
import { type ClaimJson, claimJson, toClaim } from './claims/rows.ts'
import type { Refund, RefundFacts } from './refund.ts'

export type RefundRow = {
  id: RefundId
  store_id: StoreId
  payment_id: string
  checkout_id: CheckoutId | null
  order_id: string | null
  network: string
  asset: string
  identity: string
  wallet: string
  amount: string
  recipient: string | null
  way: RefundWay
  reason: string | null
  status: RefundStatus
  version: number
  actor: Actor
  created_at: Date
  slot: number | null
  nonce: string | null
  signed_at: Date | null
  cancel_asked_at: Date | null
  transaction_hash: string | null
  position: number | null
  finality: Finality | null
  declared: string | null
  failure: string | null
  completed_at: Date | null
  ended_at: Date | null
  is_watched: boolean
  claim: ClaimJson | null
}

export function toRefund(row: RefundRow): Refund {
  return {
    id: row.id,
    storeId: row.store_id,
    paymentId: row.payment_id,
    checkoutId: row.checkout_id,
    orderId: row.order_id,
    network: row.network,
    asset: row.asset,
    identity: row.identity,
    wallet: row.wallet,
    amount: BigInt(row.amount),
    recipient: row.recipient,
    way: row.way,
    reason: row.reason,
    status: row.status,
    version: row.version,
    actor: row.actor,
    createdAt: row.created_at,
    slot: row.slot,
    nonce: row.nonce,
    signedAt: row.signed_at,
    cancelAskedAt: row.cancel_asked_at,
    transaction: row.transaction_hash,
    position: row.position,
    finality: row.finality,
    declared: row.declared,
    failure: row.failure,
    completedAt: row.completed_at,
    endedAt: row.ended_at,
    isWatched: row.is_watched,
    claim: row.claim && toClaim(row.claim),
  }
}

/** SQL: what `toRefund` reads of a row `r`. */
export const refundColumns = `r.*, (select c.order_id from all_checkouts c where c.id = r.checkout_id) as order_id,
  (select ${claimJson('m')} from refund_claims m where m.refund_id = r.id) as claim`

export async function readRefund(
  db: Database | Transaction,
  storeId: StoreId,
  id: string,
): Promise<Refund | null> {
  const [row] = await db.query<RefundRow>(
    `select ${refundColumns} from refunds r where r.id = $2 and r.store_id = $1`,
    [storeId, id],
  )
  return row ? toRefund(row) : null
}

/** Every transaction that changes a refund locks it first. */
export async function lockRefund(tx: Transaction, storeId: StoreId, id: string): Promise<Refund | null> {
  const [row] = await tx.query<RefundRow>(
    `select ${refundColumns} from refunds r where r.id = $2 and r.store_id = $1 for no key update of r`,
    [storeId, id],
  )
  return row ? toRefund(row) : null
}

/** Of requests with the same key, one goes first and the others find what it made. */
export async function lockIdempotencyKey(tx: Transaction, storeId: StoreId, key: string): Promise<void> {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('refund ' || $1 || ' ' || $2, 0))", [
    storeId,
    key,
  ])
}

export async function readByIdempotencyKey(
  db: Database | Transaction,
  storeId: StoreId,
  key: string,
): Promise<{ readonly refund: Refund; readonly bodyHash: string } | null> {
  const [row] = await db.query<RefundRow & { body_hash: string }>(
    `select ${refundColumns} from refunds r where r.store_id = $1 and r.idempotency_key = $2`,
    [storeId, key],
  )
  return row ? { refund: toRefund(row), bodyHash: row.body_hash } : null
}

export type RefundFilter = {
  readonly paymentId: string | null
  readonly checkoutId: string | null
  readonly status: RefundStatus | null
}

/** A store's refunds, newest first, before the id `before`. A status is looked for among the newest `windowRows`. */
const windowRows = 500

export async function listRefunds(
  db: Database | Transaction,
  storeId: StoreId,
  { paymentId, checkoutId, status }: RefundFilter,
  before: string,
  limit: number,
): Promise<{ readonly refunds: Refund[]; readonly endedAt: RefundId | null }> {
  const index =
    paymentId !== null ? 'r.payment_id = $5' : checkoutId !== null ? 'r.checkout_id = $5' : '$5::text is null'
  const rows = await db.query<RefundRow>(
    `select ${refundColumns} from refunds r where r.store_id = $1 and r.id < $2 and ${index} order by r.id desc
     limit case when $4::text is null then $3 else ${windowRows} end`,
    [storeId, before, limit, status, paymentId ?? checkoutId],
  )
  const seen = rows.map(toRefund)
  const found = seen.filter((refund) => status === null || refund.status === status)
  const isCut = status !== null && seen.length === windowRows && found.length < limit
  return { refunds: found.slice(0, limit), endedAt: isCut ? (seen.at(-1)?.id ?? null) : null }
}

/** Refunds of a payment that can no longer move money. */
export async function listEnded(tx: Transaction, paymentId: string): Promise<RefundId[]> {
  const rows = await tx.query<{ id: RefundId }>(
    'select id from refunds where payment_id = $1 and ended_at is not null order by id',
    [paymentId],
  )
  return rows.map(({ id }) => id)
}

/** The refunds of these checkouts' payments, oldest first. */
export async function listByCheckouts(
  db: Database | Transaction,
  checkoutIds: readonly string[],
): Promise<Refund[]> {
  const rows = await db.query<RefundRow>(
    `select ${refundColumns} from refunds r where r.checkout_id = any($1) order by r.id`,
    [checkoutIds],
  )
  return rows.map(toRefund)
}

/** What lanes, followers and proofs of death have written about a refund's nonce, without knowing of refunds. */
export type Findings = {
  readonly authorization: RefundFacts['authorization']
  /** Why its authorization was refused or died. */
  readonly reason: string | null
  /** Its own transfer on the chain, and whether enough nodes tell of it. */
  readonly transfer: {
    readonly transaction: string
    readonly finality: Finality
    readonly counts: boolean
  } | null
}

/** About a refund of which nothing was handed out. */
export const nothingFound: Findings = { authorization: null, reason: null, transfer: null }

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
 * SQL: the authorization of a refund `r`, and the transfer that it made. A nonce that expired unused may belong to another
 * refund since then, and so does the transfer.
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

/** Read after the refund was locked: every transaction that changes its status holds that lock. */
export async function readFindings(
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
  return rows.map((row) => ({ refund: toRefund(row), findings: toFindings(row) }))
}

/** What was refunded by this store's managers since a time, by asset, in whole tokens. */
export async function sumSince(
  db: Database | Transaction,
  storeId: StoreId,
  actorIds: readonly string[],
  since: string,
): Promise<{ readonly network: string; readonly asset: string; readonly units: bigint }[]> {
  const rows = await db.query<{ network: string; asset: string; units: string }>(
    `select r.network, r.asset, sum(r.amount)::text as units from refunds r
     where r.store_id = $1 and r.id >= $3 and r.actor ->> 'id' = any($2) and r.status not in ('FAILED', 'CANCELED')
     group by r.network, r.asset`,
    [storeId, actorIds, since],
  )
  return rows.map(({ network, asset, units }) => ({ network, asset, units: BigInt(units) }))
}

/** How many of a store's newest refunds wait for it: to sign, to name a transaction, or to confirm an address. */
export async function countForStore(db: Database | Transaction, storeId: StoreId): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*)::integer as count from (
       select * from refunds r where r.store_id = $1 order by r.id desc limit ${windowRows}
     ) r where r.status = 'REQUESTED' and r.cancel_asked_at is null and (r.recipient is not null
       or exists (select 1 from refund_claims m where m.refund_id = r.id and m.address is not null))`,
    [storeId],
  )
  return row?.count ?? 0
}

/**
 * Of those that refund a payment or accept it for a checkout, one goes first and the others see what it did. Its chain's
 * lock comes before this one, and its checkout's after: until this one is held, another checkout may become the payment's.
 */
export async function lockRefundsOf(tx: Transaction, paymentId: string): Promise<void> {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('refunds of ' || $1, 0))", [paymentId])
}

/** Whether a refund of the payment counts. */
export async function isRefunded(tx: Transaction, paymentId: string): Promise<boolean> {
  const rows = await tx.query('select 1 as one from refund_totals where payment_id = $1 and reserved > 0', [
    paymentId,
  ])
  return rows.length > 0
}

/** What refunds have returned of a payment, and what is left of it; null if the store has not refunded any of it. */
export async function readLeft(
  db: Database,
  storeId: StoreId,
  paymentId: string,
): Promise<{ readonly refundedAmount: string; readonly refundable: string } | null> {
  const [row] = await db.query<{ returned: string; left: string }>(
    `select (t.amount - t.reserved)::text as left, (select coalesce(sum(r.amount), 0)::text from refunds r
       where r.payment_id = t.payment_id and r.store_id = t.store_id and r.status = 'COMPLETED') as returned
     from refund_totals t where t.payment_id = $2 and t.store_id = $1`,
    [storeId, paymentId],
  )
  return row ? { refundedAmount: row.returned, refundable: row.left } : null
}

/** What went back of these payments, in the smallest unit of each one's asset: seen on the chain, or on the store's word. */
export async function sumReturned(
  db: Database,
  storeId: StoreId,
  paymentIds: readonly string[],
): Promise<ReadonlyMap<string, bigint>> {
  const rows = await db.query<{ payment_id: string; units: string }>(
    `select r.payment_id, sum(r.amount)::text as units from refunds r
     where r.payment_id = any($2) and r.store_id = $1 and r.status in ('COMPLETED', 'DECLARED') group by r.payment_id`,
    [storeId, paymentIds],
  )
  return new Map(rows.map(({ payment_id, units }) => [payment_id, BigInt(units)]))
}

/** How many refunds of a network wait for a transaction, and for a block. Counted up to `max`. */
export async function countOnTheWay(
  db: Database,
  network: string,
  max: number,
): Promise<{ readonly SIGNED: number; readonly SENT: number }> {
  const [row] = await db.query<{ signed: number; sent: number }>(
    `select count(*) filter (where status = 'SIGNED')::integer as signed,
       count(*) filter (where status = 'SENT')::integer as sent
     from (select status from refunds where is_watched and network = $1 and status in ('SIGNED', 'SENT') limit $2) waiting`,
    [network, max],
  )
  return { SIGNED: row?.signed ?? 0, SENT: row?.sent ?? 0 }
}
