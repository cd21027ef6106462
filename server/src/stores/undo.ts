import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import type { StoreId, WalletId } from '../ids.ts'
import { actorOfSession } from '../members/announce.ts'
import { type Touch, useTouch } from '../members/confirm.ts'
import { lockFor } from '../members/invite.ts'
import { Refusal } from '../members/refusal.ts'
import { endWaiting, lockStore, tell } from './change.ts'
import { readChange, type WalletChange, writeUndone } from './change-rows.ts'
import * as rows from './rows.ts'
import type { Store } from './store.ts'

/**
 * An owner goes back to the wallet that was current before a change. Whatever was made after it in that family is undone
 * with it, and what waits is ended, so a thief who changed the wallet twice gains nothing. The wallets that were put to
 * use meanwhile retire. `cancelsOpen`: open checkouts that would pay to one of them are canceled too, which `work` does
 * (checkouts/cancel-undone.ts); without it they keep what they were created with.
 */
export async function undoChange(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  changeId: string,
  cancelsOpen: boolean,
  now: Date,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    await lockFor(tx, storeId, touch.session.member.id, 'wallets:write')
    const store = await lockStore(tx, storeId)
    const change = await readChange(tx, storeId, changeId)
    if (!change) throw new Refusal('not_found')
    const { family, previous, wallet } = change
    const values = {
      ...{ storeId, changeId, address: previous?.address ?? '' },
      ...(cancelsOpen && { cancelsOpen: 'yes' }),
    }
    await useTouch(ctx, tx, touch, 'wallet.undo', values, now)
    if (!change.isUndoable) throw new Refusal('undo_over')
    const owner = actorOfSession(touch.session)
    const undone = await writeUndone(tx, change, owner, cancelsOpen, previous?.address ?? null)
    const backId = previous && (await findBack(tx, change))
    await endWaiting(ctx, tx, store, family, owner, backId, now)
    const used = new Set(undone.filter(({ kind }) => kind === 'use').map(({ walletId }) => walletId))
    for (const walletId of used) if (walletId !== backId) await retire(ctx, tx, store, owner, walletId, now)
    if (backId) await rows.renewWallet(tx, backId)
    await tell(ctx, tx, store, owner, 'wallet.undone', backId ?? wallet.id, now)
  })
}

/** The previous wallet, or its address's later registration. */
async function findBack(
  tx: Transaction,
  { storeId, family, previous }: WalletChange,
): Promise<WalletId | null> {
  if (!previous) return null
  return (await rows.findActiveWallet(tx, storeId, family, previous.address))?.id ?? previous.id
}

async function retire(
  ctx: Context,
  tx: Transaction,
  store: Store,
  owner: Actor,
  walletId: WalletId,
  now: Date,
): Promise<void> {
  const wallet = await rows.readWallet(tx, store.id, walletId)
  if (!wallet || wallet.retiredAt !== null) return
  await rows.retireWallet(tx, walletId, now)
  await tell(ctx, tx, store, owner, 'wallet.retired', walletId, now)
}
