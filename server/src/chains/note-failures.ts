import type { Node } from '../config/parse.ts'
import type { Context } from '../context.ts'
import type { NoteOutcome } from './rpc.ts'

/** A provider that keeps failing gets one log line in this time. Every failure is counted. */
const quietMs = 60_000

/** Counts what the providers of nodes answer, and tells the operator about those that do not. */
export function openFailures(
  { log, metrics, now }: Context,
  network: string,
  nodes: readonly Node[],
): NoteOutcome {
  const quietUntil = new Map<string, number>()
  // A counter that appears with its first increase hides that increase from Prometheus.
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
