import type { StoreStanding } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { nameStore } from '../database/scope.ts'
import { insertCounter } from '../events/rows.ts'
import { newId } from '../ids.ts'
import type { Mode } from '../networks.ts'
import { defaultFinalityPolicy, type Store } from './store.ts'

type NewStore = {
  readonly name: string
  readonly mode: Mode
  readonly supportEmail?: string
  readonly supportUrl?: string
  /** How a store begins that a stranger signs up for. A store that an operator makes is approved. */
  readonly signsUpAs?: Exclude<StoreStanding, 'suspended'>
}

export async function createStore(ctx: Context, input: NewStore, now: Date): Promise<Store> {
  return await ctx.db.transaction((tx) => createStoreIn(ctx, tx, input, now))
}

/** In the caller's transaction, whose statements are about this store from here on. */
export async function createStoreIn(
  ctx: Context,
  tx: Transaction,
  input: NewStore,
  now: Date,
): Promise<Store> {
  const store: Store = {
    id: newId('st', ctx.config.cell, now),
    mode: input.mode,
    name: input.name,
    logoUrl: null,
    accentColor: null,
    supportEmail: input.supportEmail ?? null,
    supportUrl: input.supportUrl ?? null,
    legalName: null,
    legalAddress: null,
    taxId: null,
    finalityPolicy: defaultFinalityPolicy,
    timeZone: 'UTC',
    reportCurrency: 'USD',
    walletChanges: 'key',
    managerRefundLimit: '0',
    standing: input.signsUpAs ?? 'approved',
    suspendedReason: null,
    isLimited: input.signsUpAs !== undefined,
    revision: 1,
    createdAt: now,
  }
  await nameStore(tx, store.id)
  await tx.query(
    `insert into stores (id, mode, name, finality_policy, created_at, support_email, support_url, admission, signed_up)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      store.id,
      store.mode,
      store.name,
      JSON.stringify(store.finalityPolicy),
      store.createdAt,
      store.supportEmail,
      store.supportUrl,
      store.standing,
      store.isLimited,
    ],
  )
  await insertCounter(tx, store.id)
  return store
}
