import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import { appendEvent, newEvent } from '../../events/append.ts'
import type { Network } from '../../networks.ts'
import { toPayment } from './credit.ts'
import { listUnannounced, noteAnnounced } from './rows.ts'

/** Announces unmatched payments, but only once they are safe: until then a claim may still arrive. */
export async function announceUnmatched(ctx: Context, tx: Transaction, network: Network): Promise<void> {
  const unmatched = await listUnannounced(tx, network.caip2)
  const isNews = (row: (typeof unmatched)[number]) =>
    row.ownerId !== null && row.amount >= dustUnits(network, row.asset) && !row.dismissedAt
  for (const row of unmatched) {
    if (row.ownerId === null || !isNews(row)) continue
    const data = { checkout: null, payment: toPayment(row) }
    await appendEvent(tx, newEvent(ctx, row.ownerId, null, { type: 'payment.unmatched', data }, ctx.now()))
  }
  if (unmatched.length === 0) return
  await noteAnnounced(tx, network.caip2, [...new Set(unmatched.map(({ paymentId }) => paymentId))])
  // A payment has one row per store that may decide about it.
  const found = new Map(unmatched.filter(isNews).map((row) => [row.paymentId, row]))
  tx.afterCommit(() => {
    for (const { paymentId, transaction, amount } of found.values()) {
      ctx.metrics.payments.inc({ network: network.id, outcome: 'unmatched' })
      ctx.log.info(
        { paymentId, network: network.id, txHash: transaction, amount: `${amount}` },
        'payment belongs to no checkout; its store decides about it',
      )
    }
  })
}

/** Below a cent is dust: it gets a row, but no event and no log line. */
function dustUnits(network: Network, asset: string): bigint {
  const token = network.assets.find(({ address }) => address.toLowerCase() === asset)
  return 10n ** BigInt((token?.decimals ?? 6) - 2)
}
