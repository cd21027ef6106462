import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import type { StoreId, WalletChangeId, WalletId } from '../ids.ts'
import { actorOfSession } from '../members/announce.ts'
import { type Touch, useTouch } from '../members/confirm.ts'
import { lockFor } from '../members/invite.ts'
import { Refusal } from '../members/refusal.ts'
import { type Author, announceChange, endWaiting, readChange, type WalletChange } from './change.ts'
import * as rows from './rows.ts'

/**
 * An owner goes back to the wallet that was current before a change. All later changes in that family are undone with
 * it, and a waiting one is ended, so a thief who changed the wallet twice gains nothing. The wallets used
 * meanwhile are retired. With `cancelsOpen`, `work` also cancels open checkouts that would pay to one of them
 * (checkouts/cancel.ts); without it they stay as they were created.
 */
export async function undoChange(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  { changeId, cancelsOpen }: { readonly changeId: string; readonly cancelsOpen: boolean },
  now: Date,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    await lockFor(tx, storeId, touch.session.member.id, 'wallets:write')
    const store = await rows.lockStore(tx, storeId)
    const change = await readChange(tx, storeId, changeId)
    if (!change) throw new Refusal('not_found')
    const { family, previous, wallet } = change
    const values = {
      ...{ storeId, changeId, address: previous?.address ?? '' },
      ...(cancelsOpen && { cancelsOpen: 'yes' }),
    }
    await useTouch(ctx, tx, touch, { action: 'wallet.undo', values }, now)
    if (!change.isUndoable) throw new Refusal('undo_over')
    const by = { store, actor: actorOfSession(touch.session), now }
    const undone = await writeUndone(tx, change, by.actor, cancelsOpen)
    const backId = previous && (await findBack(tx, change))
    await endWaiting(ctx, tx, by, family, backId)
    const used = new Set(undone.filter(({ kind }) => kind === 'use').map(({ walletId }) => walletId))
    for (const walletId of used) if (walletId !== backId) await retire(ctx, tx, by, walletId)
    if (backId) await rows.renewWallet(tx, backId)
    await announceChange(ctx, tx, by, 'wallet.undone', backId ?? wallet.id)
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

async function retire(ctx: Context, tx: Transaction, by: Author, walletId: WalletId): Promise<void> {
  const wallet = await rows.readWallet(tx, by.store.id, walletId)
  if (!wallet || wallet.retiredAt !== null) return
  await rows.retireWallet(tx, walletId, by.now)
  await announceChange(ctx, tx, by, 'wallet.retired', walletId)
}

/**
 * Marks a change of a family and all later ones as undone. If a change led to another address, its open checkouts may
 * be canceled.
 */
async function writeUndone(
  tx: Transaction,
  { storeId, family, made, previous }: WalletChange,
  undoneBy: Actor,
  cancelsOpen: boolean,
): Promise<{ readonly walletId: WalletId; readonly kind: WalletChange['kind'] }[]> {
  return await tx.query<{ walletId: WalletId; kind: WalletChange['kind'] }>(
    `update wallet_changes c set undone_at = clock(), undone_by = $4,
       cancel_at = case when $5::boolean and exists (select 1 from wallets n
         where n.id = c.next_id and n.address is distinct from $6) then clock() end
     where c.store_id = $1 and c.family = $2 and c.made >= $3 and c.undone_at is null
     returning c.wallet_id as "walletId", c.kind`,
    [storeId, family, made, JSON.stringify(undoneBy), cancelsOpen, previous?.address ?? null],
  )
}

/** An undone change whose wallet open checkouts may still pay to. */
export type Cancellation = {
  readonly changeId: WalletChangeId
  readonly storeId: StoreId
  readonly address: string
  readonly since: Date
  readonly undoneBy: Actor
}

/** Takes one that is due, unless another process has it. */
export async function takeCancellation(tx: Transaction): Promise<Cancellation | null> {
  const [row] = await tx.query<Cancellation>(
    `select c.id as "changeId", c.store_id as "storeId", n.address, c.made_at as since, c.undone_by as "undoneBy"
     from wallet_changes c join wallets n on n.id = c.next_id
     where c.cancel_at <= clock() order by c.cancel_at limit 1 for update of c skip locked`,
  )
  return row ?? null
}

/** Schedules the next search. It ends `minutes` after the change was undone. */
export async function scheduleCancellation(
  tx: Transaction,
  changeId: WalletChangeId,
  againSeconds: number,
  minutes: number,
): Promise<void> {
  await tx.query(
    `update wallet_changes set cancel_at = case when clock() < undone_at + make_interval(mins => $3)
       then clock() + make_interval(secs => $2) end where id = $1`,
    [changeId, againSeconds, minutes],
  )
}
