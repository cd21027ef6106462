import type { GasQuota } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import { unitsToText } from '../../money.ts'
import type { Rail, Rails } from '../rail.ts'

/** What settlements for a store have cost today, on each network where that is limited. */
export async function readQuotas(
  { db, config }: Context,
  rails: Rails,
  store: { readonly id: string; readonly mode: string; readonly isLimited: boolean },
  now: Date,
): Promise<GasQuota[]> {
  const spent = await readStoreGas(db, store.id)
  return [...rails.values()].flatMap((rail) => {
    const { network } = rail
    const perDay = costPerDay(rail, store.isLimited)
    const isOffered = network.mode === store.mode && config.networks.includes(network.id)
    if (!isOffered || perDay === null) return []
    const { decimals, symbol } = network.nativeCurrency
    return {
      network: network.caip2,
      currency: symbol,
      spent: unitsToText(spent.get(network.caip2) ?? 0n, decimals),
      perDay: unitsToText(perDay, decimals),
      resetsAt: nextDay(now).toISOString(),
    }
  })
}

/** What settlements for a store may cost per day. */
export function costPerDay(rail: Rail, isLimited: boolean): bigint | null {
  return isLimited ? rail.unprovenCostPerDay : rail.storeCostPerDay
}

/** Midnight UTC, when quotas start again. */
export function nextDay(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1))
}

/** What a store's settlements have cost today (UTC), by network. */
export async function readStoreGas(db: Database, storeId: string): Promise<Map<string, bigint>> {
  const rows = await db.query<{ network: string; spent: string }>(
    "select network, spent from store_gas where store_id = $1 and day = (clock() at time zone 'utc')::date",
    [storeId],
  )
  return new Map(rows.map(({ network, spent }) => [network, BigInt(spent)]))
}
