import type { Database, Transaction } from './db.ts'

/**
 * The database as seen from inside a transaction that is open: whatever is done with it is part of that transaction,
 * also what would otherwise begin one of its own. Wake-ups are sent once it is committed.
 */
export function joinTransaction(db: Database, tx: Transaction): Database {
  return {
    ...db,
    query: (text, values) => tx.query(text, values),
    transaction: (work) => work(tx),
    wakeUps: { ...db.wakeUps, send: (channel) => tx.afterCommit(() => db.wakeUps.send(channel)) },
  }
}
