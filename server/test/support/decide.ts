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

/** Ends the wait in which members can undo their decisions, and applies them. Returns how many. */
export async function applyHeld({ ctx, databaseUrl }: Pick<TestApp, 'ctx' | 'databaseUrl'>): Promise<number> {
  await ctx.db.query('update decisions set due_at = clock() where decided_at is null and due_at is not null')
  const db = openDatabase({ url: urlAs('work', databaseUrl), connections: 2, name: 'test-held' })
  try {
    return await applyDecisions({ ...ctx, db }, ctx.now())
  } finally {
    await db.close()
  }
}
