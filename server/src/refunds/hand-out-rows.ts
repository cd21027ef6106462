import type { Transaction } from '../database/db.ts'
import type { RefundId } from '../ids.ts'

/** Refunds of the same payment that can no longer move money. */
export async function listEnded(tx: Transaction, paymentId: string): Promise<RefundId[]> {
  const rows = await tx.query<{ id: RefundId }>(
    'select id from refunds where payment_id = $1 and ended_at is not null order by id',
    [paymentId],
  )
  return rows.map(({ id }) => id)
}

/** Which of the payment's nonces is handed out: from now on the refund counts until that one is dead. */
export async function noteHandOut(
  tx: Transaction,
  id: RefundId,
  handOut: { readonly slot: number; readonly nonce: string } | null,
): Promise<void> {
  await tx.query('update refunds set slot = $2, nonce = $3, is_watched = true where id = $1', [
    id,
    handOut?.slot ?? null,
    handOut?.nonce ?? null,
  ])
}

export async function noteSigned(tx: Transaction, id: RefundId): Promise<void> {
  await tx.query(
    `update refunds set signed_at = clock(), status = 'SIGNED', version = version + 1, is_watched = true
     where id = $1 and status = 'REQUESTED'`,
    [id],
  )
}
