import type { Database } from '../database/db.ts'

/** Which of these refunds have an outcome. */
export async function listWithOutcome(db: Database, ids: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `select id from refunds where id = any($1) and status in ('COMPLETED', 'DECLARED', 'FAILED', 'CANCELED')`,
    [ids],
  )
  return rows.map(({ id }) => id)
}
