import type { Actor } from '@farthing/sdk'
import type { Transaction } from '../../database/db.ts'
import type { StoreId } from '../../ids.ts'

/** Writes what a store notes about a payment; null removes it. False if that is what the note says already. */
export async function writeNote(
  tx: Transaction,
  storeId: StoreId,
  paymentId: string,
  note: string | null,
  actor: Actor,
): Promise<boolean> {
  const rows =
    note === null
      ? await tx.query(
          'delete from payment_notes where payment_id = $2 and store_id = $1 returning payment_id',
          [storeId, paymentId],
        )
      : await tx.query(
          `insert into payment_notes as n (payment_id, store_id, note, actor, noted_at)
           values ($2, $1, $3, $4, clock())
           on conflict (payment_id, store_id)
             do update set note = excluded.note, actor = excluded.actor, noted_at = excluded.noted_at
             where n.note <> excluded.note
           returning payment_id`,
          [storeId, paymentId, note, JSON.stringify(actor)],
        )
  return rows.length > 0
}
