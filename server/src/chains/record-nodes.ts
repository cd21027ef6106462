import type { Context } from '../context.ts'
import { addNodeRecords, type NodeRecord } from './node-rows.ts'

type Seen = Readonly<Record<'answered' | 'failed', number>>

/**
 * Writes down now and then what this process's metrics say about providers, for those who look at the deployment from
 * another process. The metrics count since the process began, so what was written before is taken off.
 */
export function openNodeRecorder({ db, metrics }: Context): () => Promise<void> {
  const written = new Map<string, Seen>()
  return async () => {
    const now = new Map<string, NodeRecord>()
    for (const [field, counter] of [
      ['answered', metrics.nodeAnswers],
      ['failed', metrics.nodeFailures],
    ] as const) {
      for (const { labels, value } of (await counter.get()).values) {
        const { network = '', provider = '' } = labels
        const key = `${network} ${provider}`
        now.set(key, {
          ...(now.get(key) ?? { network: `${network}`, provider: `${provider}`, answered: 0, failed: 0 }),
          [field]: value,
        })
      }
    }
    const news = [...now].flatMap(([key, record]) => {
      const before = written.get(key) ?? { answered: 0, failed: 0 }
      const [answered, failed] = [record.answered - before.answered, record.failed - before.failed]
      return answered + failed > 0 ? { ...record, answered, failed } : []
    })
    if (news.length === 0) return
    await addNodeRecords(db, news)
    for (const [key, record] of now) written.set(key, record)
  }
}
