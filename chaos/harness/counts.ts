import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Stand } from './stand.ts'

/** Counts the actions of buyers, stores and nodes. */
export function countsOf({ load, nodes, databaseProxy, receiver }: Stand): Record<string, number> {
  return {
    'checkouts created': load.counts.created,
    'payments completed': load.counts.paid,
    'payments refused': load.counts.refused,
    'refunds asked for': load.counts.refundsAsked,
    'refunds signed': load.counts.refundsSigned,
    'refunds completed': load.counts.refunded,
    'plain transfers': load.counts.plain,
    'signatures copied from the chain': load.counts.copied,
    'payments accepted by their stores': load.counts.decided,
    'signatures made': load.counts.signed,
    'answers recorded': load.answers.length,
    'requests without answer': load.counts.unanswered,
    'webhooks received': receiver.received.length,
    'RPC faults': nodes.faults,
    'RPC method × fault met': nodes.committed.size,
    ...sumByFault(nodes.committed),
    'commit replies lost': databaseProxy.lostReplies,
    'write requests lost': databaseProxy.lostRequests,
    'transactions seen': nodes.sightings.length,
    'transactions seen while the database was away': nodes.sightings.filter(
      ({ isCommitted }) => isCommitted === null,
    ).length,
  }
}

/** How many calls met each fault of a node, over all methods. */
function sumByFault(committed: ReadonlyMap<string, number>): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const [pair, times] of committed) {
    const what = `RPC ${pair.split(' ')[1]}`
    sums[what] = (sums[what] ?? 0) + times
  }
  return sums
}

/** Counts that must be zero in every run. */
export const unwanted = ['answered 500', 'assertions failed', 'ended by themselves', 'settlers stopped']

/** Answers by status, and the processes' failures. */
export function complaintsOf({ load, fleet, folder }: Stand): Record<string, number> {
  const statuses = Map.groupBy(load.answers, ({ status }) => `answered ${status}`)
  const logs = fleet.members.map(({ name }) => readFileSync(join(folder, `${name}.log`), 'utf8')).join('\n')
  return {
    ...Object.fromEntries([...statuses].map(([status, answers]) => [status, answers.length])),
    'ended by themselves': fleet.falls.length,
    'assertions failed': logs.match(/AssertionError/g)?.length ?? 0,
    // No other program has the settlers' keys here.
    'settlers stopped': logs.match(/that is not ours used a settler/g)?.length ?? 0,
  }
}
