import type { Database, Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'

/** Whose address this is, in stored form: the store's own, whether or not it is still paid there, or a settler's. */
export async function readOwnerOf(
  db: Database | Transaction,
  storeId: StoreId,
  address: string,
): Promise<'store' | 'settler' | null> {
  const [row] = await db.query<{ owner: 'store' | 'settler' | null }>(
    `select case when exists (select 1 from wallets w where w.store_id = $1 and w.pay_to = $2) then 'store'
       when exists (select 1 from settlers s where s.address = $2) then 'settler' end as owner`,
    [storeId, address],
  )
  return row?.owner ?? null
}

/** The wallets that the store has proven to hold, retired ones too, in stored form. */
export async function listProven(db: Database | Transaction, storeId: StoreId): Promise<string[]> {
  const rows = await db.query<{ pay_to: string }>(
    'select distinct pay_to from wallets where store_id = $1 and proven_at is not null',
    [storeId],
  )
  return rows.map(({ pay_to }) => pay_to)
}
