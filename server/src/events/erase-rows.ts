import type { Transaction } from '../database/db.ts'

/** Erases a payer from the events that announced these payments without a checkout, each between two ids of events. */
export async function eraseUnmatched(
  tx: Transaction,
  payer: string,
  erased: string,
  announced: readonly { readonly id: string; readonly from: string; readonly until: string }[],
): Promise<void> {
  await tx.query(
    `update events e set data = regexp_replace(e.data::text, $2, $3, 'gi')::json
     from json_to_recordset($1) as i (id text, "from" text, until text)
     where e.id >= i."from" and e.id < i.until and e.checkout_id is null and e.data #>> '{payment,id}' = i.id`,
    [JSON.stringify(announced), payer, erased],
  )
}
