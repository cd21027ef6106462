import type { Actor, WalletChanges } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import type { StoreId } from '../ids.ts'
import { lockStore } from './change.ts'
import { writeWalletChanges } from './rows.ts'
import { storeToEvent } from './store.ts'

/**
 * Sets what it takes to change wallets: for an operator, or for an owner (confirm.ts). A key cannot, because it is what
 * the setting guards against. What waits goes on waiting, also where a key is enough from now on.
 */
export async function setWalletChanges(
  ctx: Context,
  tx: Transaction,
  storeId: StoreId,
  actor: Actor,
  walletChanges: WalletChanges,
  now: Date,
): Promise<void> {
  const store = await lockStore(tx, storeId)
  await writeWalletChanges(tx, storeId, walletChanges)
  if (store.walletChanges === walletChanges) return
  const data = { store: storeToEvent({ ...store, walletChanges }) }
  await appendEvent(tx, newEvent(ctx, storeId, actor, 'store.updated', data, now))
}
