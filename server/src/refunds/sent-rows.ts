import type { Actor } from '@farthing/sdk'
import type { Database, Transaction } from '../database/db.ts'
import type { RefundId, StoreId } from '../ids.ts'

/** SQL for refunds that stores pay by themselves. */

/** Names the transaction that pays a refund. False if one that was named has proven it, or it waits for none. */
export async function writeNamed(
  tx: Transaction,
  id: RefundId,
  transaction: string,
  actor: Actor,
): Promise<boolean> {
  const rows = await tx.query(
    `update refunds r set transaction_hash = $2, named_at = clock(), looked_at = null, failure = null, said_by = $3,
       status = 'SENT', version = r.version + 1, is_watched = true
     where r.id = $1 and r.way = 'sent' and r.status in ('REQUESTED', 'SENT') and r.cancel_asked_at is null
       and r.position is null and r.declared is null and r.recipient is not null returning r.id`,
    [id, transaction, JSON.stringify(actor)],
  )
  return rows.length > 0
}

/** There is no way back from this: what the store says about its own payment is not for us to take back. */
export async function writeDeclared(
  tx: Transaction,
  id: RefundId,
  reference: string,
  actor: Actor,
): Promise<boolean> {
  const rows = await tx.query(
    `update refunds r set declared = $2, failure = null, said_by = $3, status = 'DECLARED', version = r.version + 1,
       is_watched = false
     where r.id = $1 and r.way = 'sent' and r.status = 'REQUESTED' and r.cancel_asked_at is null returning r.id`,
    [id, reference, JSON.stringify(actor)],
  )
  return rows.length > 0
}

export type Named = {
  readonly id: RefundId
  readonly storeId: StoreId
  readonly network: string
  readonly asset: string
  readonly recipient: string
  readonly amount: bigint
  readonly transaction: string
  readonly createdAt: Date
  /** How long ago the store named it. */
  readonly ageSeconds: number
}

/**
 * Named transactions that are due for a look, least recently looked for first. Each is looked for again after as long as
 * it has been named already, within bounds.
 */
export async function takeNamed(
  db: Database,
  network: string,
  again: { readonly secondsMin: number; readonly secondsMax: number },
  limit: number,
): Promise<Named[]> {
  const rows = await db.query<{
    id: RefundId
    store_id: StoreId
    network: string
    asset: string
    recipient: string
    amount: string
    transaction_hash: string
    created_at: Date
    age: number
  }>(
    `update refunds r set looked_at = clock()
     from (select id from refunds where network = $1 and status = 'SENT' and way = 'sent' and position is null
             and transaction_hash is not null and recipient is not null
             and (looked_at is null or looked_at + least(make_interval(secs => $3),
               greatest(make_interval(secs => $2), looked_at - named_at)) <= clock())
           order by looked_at nulls first limit $4 for update skip locked) due
     where r.id = due.id
     returning r.id, r.store_id, r.network, r.asset, r.recipient, r.amount, r.transaction_hash, r.created_at,
       extract(epoch from clock() - r.named_at)::float8 as age`,
    [network, again.secondsMin, again.secondsMax, limit],
  )
  return rows.map((row) => ({
    id: row.id,
    storeId: row.store_id,
    network: row.network,
    asset: row.asset,
    recipient: row.recipient,
    amount: BigInt(row.amount),
    transaction: row.transaction_hash,
    createdAt: row.created_at,
    ageSeconds: row.age,
  }))
}

/**
 * Writes that a transfer proves the refund, unless it is a payment to some store or proves another refund. The caller
 * holds the follower's lock, under which credits are written, so the answer stays true.
 */
export async function writeProof(
  tx: Transaction,
  { id, network, transaction }: Named,
  { block, place, logIndex }: { readonly block: string; readonly place: number; readonly logIndex: number },
): Promise<'proven' | 'credited' | 'taken' | 'changed'> {
  const [row] = await tx.query<{ outcome: 'proven' | 'credited' | 'taken' | 'changed' }>(
    `with locked as (
       select r.id, r.asset from refunds r where r.id = $1 and r.transaction_hash = $3 and r.status = 'SENT'
         and r.way = 'sent' and r.position is null for no key update
     ), judged as (
       select l.id, case
         when exists (select 1 from credits k where k.network = $2 and k.block_hash = $4 and k.log_index = $6
           and k.orphaned_at is null) or exists (select 1 from archived_credits k where k.transaction_hash = $3
           and k.network = $2 and k.block_hash = $4 and k.log_index = $6 and k.orphaned_at is null) then 'credited'
         when exists (select 1 from refunds o where o.transaction_hash = $3 and o.network = $2 and o.asset = l.asset
           and o.position = $5) then 'taken' else 'proven' end as outcome
       from locked l
     ), proven as (
       update refunds r set position = $5, finality = 'finalized', failure = null, is_watched = true
       from judged j where r.id = j.id and j.outcome = 'proven'
     )
     select coalesce((select outcome from judged), 'changed') as outcome`,
    [id, network, transaction, block, place, logIndex],
  )
  return row?.outcome ?? 'changed'
}

/** Forgets a transaction that does not prove the refund, and says why: another can be named. */
export async function writeRefuted(
  tx: Database | Transaction,
  { id, transaction }: Named,
  why: string,
): Promise<boolean> {
  const rows = await tx.query(
    `update refunds r set transaction_hash = null, failure = $3, status = 'REQUESTED', version = r.version + 1,
       is_watched = false
     where r.id = $1 and r.transaction_hash = $2 and r.status = 'SENT' and r.way = 'sent' and r.position is null
     returning r.id`,
    [id, transaction, why],
  )
  return rows.length > 0
}
