import type { Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { type StoreRow, storeColumns, toStore } from './rows.ts'
import type { Store } from './store.ts'

/** That a store has proven a wallet stays true, whatever becomes of the wallet. New checkouts must see it. */
export async function noteStoreProven(tx: Transaction, storeId: StoreId, now: Date): Promise<void> {
  await tx.query(
    'update stores set proven_at = $2, revision = revision + 1 where id = $1 and proven_at is null',
    [storeId, now],
  )
}

/** Lets the rest of the transaction be the only one that does this for the store. Returns the store's revision. */
export async function holdStore(tx: Transaction, storeId: StoreId): Promise<number | null> {
  const [row] = await tx.query<{ revision: number }>(
    'select revision from stores where id = $1 for no key update',
    [storeId],
  )
  return row?.revision ?? null
}

/** Each returns the store as it is then. Checkouts made from what it was before are refused by its new revision. */
export async function writeApproved(tx: Transaction, storeId: StoreId): Promise<Store | null> {
  return await write(tx, "admission = 'approved'", [storeId])
}

export async function writeSuspended(
  tx: Transaction,
  storeId: StoreId,
  reason: string,
  now: Date,
): Promise<Store | null> {
  return await write(tx, 'suspended_at = $2, suspended_reason = $3', [storeId, now, reason])
}

export async function writeResumed(tx: Transaction, storeId: StoreId): Promise<Store | null> {
  return await write(tx, 'suspended_at = null, suspended_reason = null', [storeId])
}

async function write(tx: Transaction, change: string, values: readonly unknown[]): Promise<Store | null> {
  const [row] = await tx.query<StoreRow>(
    `update stores s set ${change}, revision = revision + 1 where s.id = $1 returning ${storeColumns}`,
    [...values],
  )
  return row ? toStore(row) : null
}
