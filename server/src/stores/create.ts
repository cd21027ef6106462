import type { Context } from '../context.ts'
import { insertCounter } from '../events/rows.ts'
import { newId } from '../ids.ts'
import type { Mode } from '../networks.ts'
import { insertStore } from './rows.ts'
import { defaultFinalityPolicy, type Store } from './store.ts'

export async function createStore(
  ctx: Context,
  input: { name: string; mode: Mode; supportEmail?: string; supportUrl?: string },
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
    finalityPolicy: defaultFinalityPolicy,
    walletChanges: 'key',
    revision: 1,
    createdAt: now,
  }
  await ctx.db.transaction(async (tx) => {
    await insertStore(tx, store)
    await insertCounter(tx, store.id)
  })
  return store
}
