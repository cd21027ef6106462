import type { ErasedNonce, ErasedPayment } from '../archive/erase-rows.ts'
import type { Transaction } from '../database/db.ts'

/** Erases a payer from what is not archived with its checkouts: the stores' notes, and the calls of our transactions. */
export async function erasePayments(
  tx: Transaction,
  payer: string,
  erased: string,
  {
    payments,
    nonces,
  }: { readonly payments: readonly ErasedPayment[]; readonly nonces: readonly ErasedNonce[] },
): Promise<void> {
  await tx.query('delete from payment_notes where payment_id = any($1)', [payments.map(({ id }) => id)])
  await tx.query(
    `update transaction_calls c set payer = $3, nonce = i.erased
     from json_to_recordset($1) as i (nonce text, erased text) where c.nonce = i.nonce and c.payer = $2`,
    [JSON.stringify(nonces), payer, erased],
  )
}
