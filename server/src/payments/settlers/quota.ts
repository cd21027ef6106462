import type { GasQuota } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import { unitsToText } from '../../money.ts'
import type { Rails } from '../rail.ts'
import { readStoreGas } from './gas-rows.ts'

/** What settlements for a store have cost today, on each network where that is limited. */
export async function readQuotas(
  { db, config }: Context,
  rails: Rails,
  storeId: string,
  mode: string,
  now: Date,
): Promise<GasQuota[]> {
  const spent = await readStoreGas(db, storeId)
  return [...rails.values()].flatMap(({ network, storeCostPerDay }) => {
    const isOffered = network.mode === mode && config.networks.includes(network.id)
    if (!isOffered || storeCostPerDay === null) return []
    const { decimals, symbol } = network.nativeCurrency
    return {
      network: network.caip2,
      currency: symbol,
      spent: unitsToText(spent.get(network.caip2) ?? 0n, decimals),
      perDay: unitsToText(storeCostPerDay, decimals),
      resetsAt: nextDay(now).toISOString(),
    }
  })
}

/** Midnight UTC, when quotas start again. */
export function nextDay(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1))
}
