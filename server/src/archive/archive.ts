/**
 * Checkouts that ended long ago lie in tables of their own, with everything that belongs to them: `archived_checkouts`
 * and nine more (migration 0030). The rows of one checkout are either all there or all in the tables that are written
 * to, so what cannot be found by id in those is looked for in both, by one statement: between two, it might come back.
 *
 * Whoever locks a checkout to write about it and does not find it brings it back, and goes on as ever.
 */

/** The database archives nothing younger, whatever is set: what is younger is read without looking in the archive. */
const archivedDaysMin = 30

/** What belongs to a checkout. Each has a table of the same name and columns in the archive. */
export const archivedTables = [
  'checkouts',
  'events',
  'credits',
  'authorizations',
  'reserved_amounts',
  'pasted_transactions',
  'payment_hints',
] as const
/** What settlers sent, by the month in which they did. */
export const sentTables = ['transactions', 'transaction_calls', 'broadcasts'] as const
const reads = new RegExp(
  `\\b(from|join) (${[...archivedTables, 'transaction_calls', 'broadcasts'].join('|')})\\b`,
  'g',
)

/** The same SQL, but over both places, except for what it reads `from only` or `join only`. For statements that only read. */
export function inBoth(sql: string): string {
  return sql.replaceAll(reads, '$1 all_$2')
}

/** Nothing that happened since then is in the archive. A day less than that, for clocks that differ. */
export function recentSince(now: Date): Date {
  return new Date(now.getTime() - (archivedDaysMin - 1) * 86_400_000)
}

/** Whether this stands in place of the address of a payer whose data was erased. */
export function isErased(payer: string): boolean {
  return payer === erasedLike(payer)
}

/** An address of the same form that nobody can pay from. Not the zero address: tokens that are minted come from there. */
export function erasedLike(payer: string): string {
  return payer.startsWith('0x') ? `0x${'0'.repeat(32)}e2a5ed00` : '1'.repeat(32)
}
