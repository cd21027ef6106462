import type { Database, Transaction } from './db.ts'

/**
 * A database for one store's screens: every statement runs in a transaction that names the store. If the console has
 * its own role, PostgreSQL then hides all other stores' rows from it.
 */
export function scopeToStore(db: Database, storeId: string): Database {
  const transaction: Database['transaction'] = (work) =>
    db.transaction(async (tx) => {
      await nameStore(tx, storeId)
      return await work(tx)
    })
  return { ...db, transaction, query: (text, values) => transaction((tx) => tx.query(text, values)) }
}

/**
 * A database for a member or key that may lose the right to act at any moment. `check` is the last statement of every
 * transaction. It locks the row that grants the right, and throws if the right is gone. So a change commits before the
 * right is revoked or not at all, and a revocation waits for one commit at most. Reads are not checked.
 */
export function checkAtEnd(db: Database, check: (tx: Transaction) => Promise<void>): Database {
  const transaction: Database['transaction'] = (work) =>
    db.transaction(async (tx) => {
      const result = await work(tx)
      await check(tx)
      return result
    })
  return {
    ...db,
    transaction,
    query: (text, values) =>
      isRead(text) ? db.query(text, values) : transaction((tx) => tx.query(text, values)),
  }
}

/**
 * A database inside an open transaction: its statements and transactions become part of that one. Wake-ups are sent
 * after the commit.
 */
export function joinTransaction(db: Database, tx: Transaction): Database {
  return {
    ...db,
    query: (text, values) => tx.query(text, values),
    transaction: (work) => work(tx),
    wakeUps: { ...db.wakeUps, send: (channel) => tx.afterCommit(() => db.wakeUps.send(channel)) },
  }
}

function isRead(sql: string): boolean {
  return /^\s*select\b/.test(sql)
}

/**
 * Applies for the rest of the transaction. Bitmap scans are off because the policy on a store's credits contains an
 * "or". The planner would read all rows of the store through bitmaps and sort them, although an index has them in
 * order.
 */
export async function nameStore(tx: Transaction, storeId: string): Promise<void> {
  await tx.query(
    "select set_config('farthing.store', $1, true), set_config('enable_bitmapscan', 'off', true)",
    [storeId],
  )
}
