import { toStored } from '../chains/families.ts'
import { openNodeRecorder } from '../chains/record-nodes.ts'
import type { Context } from '../context.ts'
import { paymentOutcomes } from '../metrics.ts'
import type { Network } from '../networks.ts'
import { countUnmatched } from './credits/rows.ts'
import type { Rail } from './rail.ts'
import { openReadiness, readReadiness } from './settlers/readiness.ts'
import { measureRunways } from './settlers/runway.ts'

/** Counting beyond this takes long and tells an operator nothing more. */
const unmatchedMax = 10_000

/**
 * Measures every network for the metrics: its settlers' balances, the age of its head, money that waits for a decision,
 * and whether it can settle. A change of the last is also logged once the next measurement confirms it, so that a
 * starting lane or a slightly late block is not logged.
 */
export function openMeasure(ctx: Context, rails: readonly Rail[]): () => Promise<void> {
  const recordNodes = openNodeRecorder(ctx, () =>
    rails.flatMap(({ network: { id }, listLimits }) =>
      listLimits().map((limits) => ({ network: id, ...limits })),
    ),
  )
  const readiness = openReadiness(ctx, new Map(rails.map((rail) => [rail.network.caip2, rail])))
  const before = new Map<string, { seen: string | null; announced: string | null }>()
  // The counter starts at zero: Prometheus does not see the first increase of a counter that appears with it.
  for (const { network } of rails) {
    ctx.metrics.reorganisations.inc({ network: network.id }, 0)
    for (const outcome of paymentOutcomes) ctx.metrics.payments.inc({ network: network.id, outcome }, 0)
  }
  return async () => {
    await recordNodes()
    await measureRunways(ctx, rails)
    for (const { network } of rails) {
      const { id, caip2 } = network
      const { headAgeSeconds } = await readReadiness(ctx.db, caip2)
      if (headAgeSeconds !== null) ctx.metrics.headAge.set({ network: id }, headAgeSeconds)
      await measureUnmatched(ctx, network)
      const why = await readiness(caip2)
      ctx.metrics.canSettle.set({ network: id }, why === null ? 1 : 0)
      const { seen, announced } = before.get(id) ?? { seen: null, announced: null }
      const isNews = why === seen && why !== announced
      before.set(id, { seen: why, announced: isNews ? why : announced })
      if (isNews && why === null) ctx.log.info({ network: id }, 'payments can be settled again')
      else if (isNews)
        ctx.log.error(
          { network: id, why },
          'payments are refused with 503: they cannot be settled; run doctor',
        )
    }
  }
}

async function measureUnmatched(ctx: Context, { id, caip2, assets }: Network): Promise<void> {
  for (const { address, decimals, symbol } of assets) {
    // A hundredth of a token is a cent; less is dust.
    const dust = 10n ** BigInt(decimals - 2)
    const asset = toStored(caip2, address)
    const { payments, units } = await countUnmatched(ctx.db, caip2, asset, dust, unmatchedMax)
    const labels = { network: id, asset: symbol }
    ctx.metrics.unmatched.set(labels, payments)
    ctx.metrics.unmatchedAmount.set(labels, Number.parseInt(units, 10) / 10 ** decimals)
  }
}
