import type { Transaction } from '../database/db.ts'

/**
 * Erases a payer, and what the store wrote about the buyer, from the events of these checkouts. Erases the payer also from
 * the events that announced payments without a checkout; `announced` has the range of ids in which each event lies.
 */
export async function eraseFromEvents(
  tx: Transaction,
  checkoutIds: readonly string[],
  payer: string,
  erased: string,
  announced: readonly { readonly id: string; readonly from: string; readonly until: string }[],
): Promise<void> {
  await tx.query(
    `update events set data = (regexp_replace(data::text, $2, $3, 'gi')::jsonb #- '{checkout,metadata}'
       #- '{checkout,successRedirectUrl}' #- '{checkout,cancelUrl}')::json
     where checkout_id = any($1)`,
    [checkoutIds, payer, erased],
  )
  await tx.query(
    `update events e set data = regexp_replace(e.data::text, $2, $3, 'gi')::json
     from json_to_recordset($1) as i (id text, "from" text, until text)
     where e.id >= i."from" and e.id < i.until and e.checkout_id is null and e.data #>> '{payment,id}' = i.id`,
    [JSON.stringify(announced), payer, erased],
  )
}
