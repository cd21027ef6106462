import type { Actor, EventType } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { announceStore } from '../members/announce.ts'
import { Problem } from '../problems.ts'
import { lockStore, storeColumns } from './rows.ts'
import { type Store, storeToEvent } from './store.ts'

/**
 * Whether a store may create checkouts. This file decides it, and `requireStanding` is the only place that asks.
 *
 *   waiting  --approve--> approved     a stranger signed up for the store, and an operator has to approve it
 *   unproven --approve--> approved     the same, but proving a wallet also approves it (prove.ts). While all its wallets
 *                                      are custodial, so that it can prove none, its standing is waiting (rows.ts)
 *   any of these --suspend--> suspended --resume--> its state before
 *
 * A store that waits or is suspended can't create checkouts, and loses nothing else: its existing ones can be paid,
 * read, accepted and canceled, its events are delivered, and its members sign in. Each change raises the store's
 * revision, so a checkout that was drafted before it is not created after it.
 */
export function requireStanding({ standing, suspendedReason }: Store): void {
  if (standing === 'approved') return
  const details = {
    waiting: 'The operator of this service has not approved the store yet.',
    unproven:
      'The store has not proven its wallet yet: get a challenge for the wallet, sign it with the wallet and present the signature.',
    suspended: `The operator of this service has suspended the store: ${suspendedReason}`,
  }
  throw new Problem('store_inactive', details[standing])
}

type Verb = 'approve' | 'suspend' | 'resume'

/** An operator's decision about a store. Owners read the reason. */
export type StandingDecision =
  | { readonly verb: 'approve' | 'resume' }
  | { readonly verb: 'suspend'; readonly reason: string }

const eventOf = {
  approve: 'store.approved',
  suspend: 'store.suspended',
  resume: 'store.resumed',
} as const satisfies Record<Verb, EventType>

/** The longest reason, in bytes: a few sentences that fit into a mail and on a screen. */
export const reasonBytesMax = 500

/**
 * Returns the store after the decision, and whether anything changed. A decision that is already in force changes
 * nothing.
 */
export async function decideStanding(
  ctx: Context,
  tx: Transaction,
  decided: {
    readonly storeId: StoreId
    readonly actor: Actor
    readonly decision: StandingDecision
    readonly now: Date
  },
): Promise<{ readonly store: Store; readonly isChanged: boolean }> {
  const { storeId, actor, decision, now } = decided
  const before = await lockStore(tx, storeId)
  const store = await write(tx, before, decision, now)
  if (!store) return { store: before, isChanged: false }
  await announceStore(ctx, tx, { actor, type: eventOf[decision.verb], store: storeToEvent(store), now })
  return { store, isChanged: true }
}

/** Returns the changed store, or null if the decision is already in force. */
async function write(
  tx: Transaction,
  { id, standing }: Store,
  decision: StandingDecision,
  now: Date,
): Promise<Store | null> {
  const isSuspended = standing === 'suspended'
  switch (decision.verb) {
    case 'approve':
      // Not while it is suspended: the suspension had a reason, which only resuming removes.
      return isSuspended || standing === 'approved' ? null : await set(tx, "admission = 'approved'", [id])
    case 'suspend':
      return isSuspended
        ? null
        : await set(tx, 'suspended_at = $2, suspended_reason = $3', [id, now, decision.reason])
    case 'resume':
      return isSuspended ? await set(tx, 'suspended_at = null, suspended_reason = null', [id]) : null
  }
}

/** The new revision refuses checkouts that were drafted before. */
async function set(tx: Transaction, change: string, values: readonly unknown[]): Promise<Store | null> {
  const [row] = await tx.query<Store>(
    `update stores s set ${change}, revision = revision + 1 where s.id = $1 returning ${storeColumns}`,
    [...values],
  )
  return row ?? null
}
