import type { Database } from '../database/db.ts'

/** A higher count would not change what to do. */
const countMax = 1_000

/** Finds what is missing in the books because it was refused (book-due.ts), and says what to do about it. */
export async function findRefused(
  db: Database,
): Promise<readonly { readonly says: string; readonly fix: string }[]> {
  const [found] = await db.query<{ count: number; first: string }>(
    `select count(*)::integer as count, (array_agg(item order by id))[1] as first from (
       select id, item from movements_due where tries > 0 order by id limit $1) refused having count(*) > 0`,
    [countMax],
  )
  if (!found) return []
  return [
    {
      says: `${found.count === 1 ? 'a payment or refund is' : `${found.count} payments or refunds are`} missing in the books, among them ${found.first}`,
      fix: 'The log of work says why ("some payments cannot be booked"). Once that is repaired, they are booked within an hour.',
    },
  ]
}
