import type { Context } from '../../context.ts'
import { remember } from '../../remember.ts'
import { type FeePayer, listFeePayers } from './rows.ts'

/** The settlers of a network that accept new payments. */
export type FeePayers = (network: string) => Promise<readonly FeePayer[]>

/** Every payment needs this list. A running lane updates its row every few hundred milliseconds. */
const rememberedMs = 1_000
const networksMax = 100

export function openFeePayers(ctx: Context): FeePayers {
  const { get } = remember((network: string) => listFeePayers(ctx.db, network), {
    forMs: rememberedMs,
    entriesMax: networksMax,
    now: ctx.now,
  })
  return get
}
