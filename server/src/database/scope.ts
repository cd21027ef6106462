import type { Database, Transaction } from './db.ts'

/**
 * The same database, for one store's screens: every statement runs in a transaction that names the store. Where the
 * console has its own role, PostgreSQL shows it no other store's rows.
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
 * The same database, for a member or key that may lose the right to act at any moment. `check` is the last statement of
 * every transaction: it locks the row that grants the right, and throws if the right is gone. So a change is committed
 * before the right is taken away, or not at all, and taking it away waits for one commit at most. Reads are not checked.
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
 * The same database, inside an open transaction: every statement and every transaction becomes part of it. Wake-ups are
 * sent once it is committed.
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
 * For the rest of the transaction. Bitmaps are off because the rule that shows one store's credits is an "or": the planner
 * would read all of a store's rows by a bitmap of both sides and sort them, where an index has them in order.
 */
export async function nameStore(tx: Transaction, storeId: string): Promise<void> {
  await tx.query(
    "select set_config('farthing.store', $1, true), set_config('enable_bitmapscan', 'off', true)",
    [storeId],
  )
}
