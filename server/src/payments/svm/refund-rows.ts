import type { Database, Transaction } from '../../database/db.ts'
import type { RefundOrder } from '../rail.ts'

/** SQL for refunds on Solana: one row per slot, which holds the one message that a settler may sign for it. */

export type HandedMessage = {
  readonly nonce: string
  /** The transaction without signatures. */
  readonly bytes: Buffer
  readonly handedAt: Date
}

/** The message that was handed out for a refund and is neither signed nor dead. */
export async function readHandedMessage(
  db: Database | Transaction,
  network: string,
  { asset, wallet, refundId, nonces }: RefundOrder,
): Promise<HandedMessage | null> {
  const [row] = await db.query<HandedMessage>(
    `select nonce, signature as bytes, claimed_at as "handedAt" from authorizations
     where network = $1 and asset = $2 and payer = $3 and nonce = any($4) and refund_id = $5 and state = 'prepared'`,
    [network, asset, wallet, nonces, refundId],
  )
  return row ?? null
}

/**
 * SQL: the message of a refund died before its wallet's signature was seen: no settler has signed it. What was sent for a
 * refund moves to the archive only after the refund has ended, and then nothing is handed out for it.
 */
const isFreed = (
  refundId: string,
) => `a.state = 'dead' and a.refund_id = ${refundId} and not exists (select 1 from refunds r where r.id = a.refund_id
  and r.signed_at is not null) and not exists (select 1 from transaction_calls c where c.network = a.network
  and c.asset = a.asset and c.payer = a.payer and c.nonce = a.nonce)`

/** SQL: a refund of the payment that was found on the chain after a restore, and that no refund accounts for yet. */
const isForgotten = (
  nonces: string,
) => `exists (select 1 from authorizations o where o.network = $1 and o.asset = $2
  and o.payer = $3 and o.nonce = any(${nonces}::text[]) and o.refund_id is null
  and not exists (select 1 from refunds r where r.nonce = o.nonce and r.ended_at is null))`

/**
 * The first slot for which a message may be made: nothing was ever handed out for it, or what was is dead and was for
 * the same refund. Null if there is none. A slot never goes to another refund, even one that nobody signed: a restored
 * database would take what the other refund has paid since for the first one's, and it would not count.
 */
export async function findFreeSlot(
  db: Database | Transaction,
  network: string,
  { asset, wallet, refundId, nonces }: RefundOrder,
): Promise<{ readonly nonce: string | null; readonly isForgotten: boolean }> {
  const [row] = await db.query<{ nonce: string | null; isForgotten: boolean }>(
    `select ${isForgotten('$4')} as "isForgotten",
       (select i.nonce from unnest($4::text[]) with ordinality as i (nonce, place)
        left join lateral (select * from authorizations a where a.network = $1 and a.asset = $2 and a.payer = $3
          and a.nonce = i.nonce offset 0) a on true
        where a.nonce is null or (${isFreed('$5')})
        order by i.place limit 1) as nonce`,
    [network, asset, wallet, nonces, refundId],
  )
  return row ?? { nonce: null, isForgotten: false }
}

/**
 * Writes the message that is about to be handed out, under the refund's lock. False if the slot is not free: the row that
 * is there holds a message that may still move money, or has.
 */
export async function writeMessage(
  tx: Transaction,
  network: string,
  order: RefundOrder,
  message: {
    readonly nonce: string
    readonly bytes: Uint8Array
    readonly settler: string
    readonly validBefore: bigint
  },
): Promise<boolean> {
  const rows = await tx.query(
    `insert into authorizations as a (network, asset, payer, nonce, store_id, refund_id, state, pay_to, amount,
       valid_after, valid_before, signature, settler, claimed_at)
     select $1, $2, $3, $4, $5, $6, 'prepared', $7, $8::numeric, 0, $9::numeric, $10, $11, clock()
     where not ${isForgotten('$12')}
     on conflict (payer, nonce, asset, network) do update set state = 'prepared', store_id = excluded.store_id,
       pay_to = excluded.pay_to, amount = excluded.amount, valid_before = excluded.valid_before,
       signature = excluded.signature, settler = excluded.settler, reason = null, resolved_at = null,
       claimed_at = clock()
       where ${isFreed('$6')}
     returning a.nonce`,
    [
      network,
      order.asset,
      order.wallet,
      message.nonce,
      order.storeId,
      order.refundId,
      order.recipient,
      order.amount.toString(),
      message.validBefore.toString(),
      message.bytes,
      message.settler,
      order.nonces,
    ],
  )
  return rows.length > 0
}
