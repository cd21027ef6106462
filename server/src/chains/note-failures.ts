import type { Node } from '../config/parse.ts'
import type { Context } from '../context.ts'
import type { NoteOutcome } from './rpc.ts'

/** A provider that keeps failing gets one log line per this time. Every failure is counted. */
const quietMs = 60_000

/** Counts the answers and failures of every provider, and logs the failures for the operator. */
export function openFailures(
  { log, metrics, now }: Context,
  network: string,
  nodes: readonly Node[],
): NoteOutcome {
  const quietUntil = new Map<string, number>()
  // The counter starts at zero: Prometheus does not see the first increase of a counter that appears with it.
  for (const { provider } of nodes) {
    metrics.nodeAnswers.inc({ network, provider }, 0)
    metrics.nodeFailures.inc({ network, provider }, 0)
    metrics.contradictions.inc({ network, provider }, 0)
  }
  return (provider, why) => {
    if (why === null) {
      metrics.nodeAnswers.inc({ network, provider })
      return
    }
    metrics.nodeFailures.inc({ network, provider })
    const at = now().getTime()
    if (at < (quietUntil.get(provider) ?? 0)) return
    quietUntil.set(provider, at + quietMs)
    log.warn(
      { network, provider, why },
      'a node did not answer and is asked last for a few seconds; if this repeats, replace its provider',
    )
  }
}
