import type { Database } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { type CreditRow, type RawCredit, toCreditRow } from '../payments/credits/credit.ts'

/** SQL for the history of one checkout. It consists of stored facts only: views of the page are not recorded. */

/** Anyone can send payments to a checkout, so the list is limited. */
const stepsMax = 50

/** A payer's signature that was claimed for the checkout, and the transaction that carried it. */
export type Claim = {
  readonly network: string
  readonly asset: string
  readonly payer: string
  readonly amount: string
  readonly state: 'claimed' | 'sent' | 'rejected' | 'dead'
  readonly reason: string | null
  readonly claimedAt: Date
  readonly resolvedAt: Date | null
  readonly transaction: string | null
  readonly sentAt: Date | null
  /** How many payments share the transaction. */
  readonly together: number
}

/** "offset 0" keeps the planner from reading all transactions to find one. */
export async function listClaims(db: Database, storeId: StoreId, checkoutId: string): Promise<Claim[]> {
  return await db.query<Claim>(
    `select a.network, a.asset, a.payer, a.amount::text as amount, a.state, a.reason, a.claimed_at as "claimedAt",
       a.resolved_at as "resolvedAt", b.hash as transaction, b.first_sent_at as "sentAt",
       coalesce(b.together, 1)::integer as together
     from (
       select * from authorizations where checkout_id = $2 and state in ('claimed', 'sent')
       union all select * from authorizations where checkout_id = $2 and state in ('rejected', 'dead')
     ) a
     left join lateral (
       select b.hash, b.first_sent_at, (select count(*) from transaction_calls o where o.settler = t.settler
         and o.settler_nonce = t.settler_nonce and o.network = t.network) as together
       from transaction_calls t
       cross join lateral (select b.hash, b.first_sent_at, b.created_at from broadcasts b where b.network = t.network
         and b.settler = t.settler and b.nonce = t.settler_nonce and b.first_sent_at is not null offset 0) b
       where t.nonce = a.nonce and t.payer = a.payer and t.asset = a.asset and t.network = a.network
       order by b.created_at desc limit 1
     ) b on true
     where a.store_id = $1 and a.reason is distinct from 'accepted' order by a.claimed_at limit ${stepsMax}`,
    [storeId, checkoutId],
  )
}

/** The money that came for the checkout and is on the chain, or was given up after the chain removed it. */
export async function listCredits(db: Database, storeId: StoreId, checkoutId: string): Promise<CreditRow[]> {
  const rows = await db.query<RawCredit>(
    `select k.*, false as is_included_again, false as is_claimed, false as is_reserved,
       (select json_build_object('text', n.note, 'actor', n.actor, 'notedAt', n.noted_at) from payment_notes n
        where n.payment_id = k.payment_id and n.store_id = $1) as note
     from credits k where k.checkout_id = $2 and (k.store_id = $1) is true
       and (k.orphaned_at is null or k.reversed_at is not null)
     order by k.included_at limit ${stepsMax}`,
    [storeId, checkoutId],
  )
  return rows.map(toCreditRow)
}

/** The delivery of a checkout's event to an endpoint, with the last answer. */
export type Told = {
  readonly id: string
  readonly eventId: string
  readonly url: string
  readonly state: 'pending' | 'delivered' | 'undeliverable'
  readonly tries: number
  readonly runAt: Date
  readonly finishedAt: Date | null
  readonly status: number | null
  readonly error: string | null
  readonly durationMs: number | null
}

export async function listTold(db: Database, storeId: StoreId, eventIds: readonly string[]): Promise<Told[]> {
  return await db.query<Told>(
    `select d.id, d.event_id as "eventId", e.url, d.state, d.tries, d.run_at as "runAt",
       d.finished_at as "finishedAt", a.status, a.error, a.duration_ms as "durationMs"
     from webhook_endpoints e
     join deliveries d on d.endpoint_id = e.id and d.event_id = any($2)
     left join lateral (select a.status, a.error, a.duration_ms from delivery_attempts a
       where a.delivery_id = d.id order by a.attempt desc limit 1) a on true
     where e.store_id = $1 order by d.sequence, d.id limit ${stepsMax}`,
    [storeId, eventIds],
  )
}
