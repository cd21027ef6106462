import type { Database, Transaction } from '../../src/database/db.ts'

/** Every row of every table as text, as a backup has it; without when a key was last used, which any request may note. */
export async function dumpRows(db: Database | Transaction): Promise<string> {
  const tables = await db.query<{ name: string }>(
    "select oid::regclass::text as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by 1",
  )
  const rows: string[] = []
  for (const { name } of tables) {
    const found = await db.query<{ text: string }>(
      `select (to_jsonb(t) - 'last_used_at')::text as text from ${name} t order by 1`,
    )
    rows.push(...found.map(({ text }) => text))
  }
  return rows.join('\n')
}
