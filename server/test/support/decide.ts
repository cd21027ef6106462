import { applyDecisions } from '../../src/checkouts/payments/apply-decisions.ts'
import { openDatabase } from '../../src/database/db.ts'
import type { TestApp } from './app.ts'
import { atEnd } from './at-end.ts'
import { urlAs } from './database.ts'

/** The part of `work` that applies stores' decisions, for tests without a worker. */
export function startDeciding({ ctx, databaseUrl }: Pick<TestApp, 'ctx' | 'databaseUrl'>): void {
  const db = openDatabase({ url: urlAs('work', databaseUrl), connections: 4, name: 'test-decide' })
  let applying: Promise<unknown> = Promise.resolve()
  const stop = db.wakeUps.listen('decisions', () => {
    applying = applying.then(() => applyDecisions({ ...ctx, db }, ctx.now()))
  })
  atEnd(async () => {
    stop()
    await applying
    await db.close()
  })
}
