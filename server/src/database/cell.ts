import type { Database, Transaction } from './db.ts'
import { SchemaError } from './schema.ts'

/**
 * A database belongs to one cell forever: every id and key that was created there contains its tag, and proxies route
 * by it. The first migration records the tag. A process with a different CELL does not start, because no proxy would
 * route its ids to this database.
 */
export async function writeCell(tx: Transaction, cell: string): Promise<void> {
  await tx.query('insert into cell (tag) values ($1) on conflict do nothing', [cell])
}

/** Throws unless the database belongs to this cell. */
export async function checkCell(db: Database, cell: string): Promise<void> {
  const [row] = await db.query<{ tag: string }>('select tag from cell')
  if (!row)
    throw new SchemaError('The database does not say which cell it is.', 'Run: farthing-admin migrate')
  if (row.tag !== cell)
    throw new SchemaError(
      `This database is cell ${row.tag}, and CELL is ${cell}.`,
      `Set CELL=${row.tag}, or correct DATABASE_URL.`,
    )
}
