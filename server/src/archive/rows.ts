import type { Database, Transaction } from '../database/db.ts'
import { inBoth } from './archive.ts'

/** SQL for the archive. What is moved, and how, is decided in the database: see migration 0030. */
type Reader = Database | Transaction

/**
 * What a statement about one checkout finds: where it is written to, and only if that is nothing, in both places. Planning
 * that takes time: for one month of several tables where the statement names the checkout by a parameter, for all months
 * elsewhere. So where the id is known, it is asked first whether there is one: strangers can make up ids.
 */
export async function queryBoth<Row extends object>(
  db: Pick<Database, 'query'>,
  sql: string,
  values: readonly unknown[],
  checkoutId: string | null = null,
): Promise<Row[]> {
  const rows = await db.query<Row>(sql, values)
  if (rows.length > 0) return rows
  if (checkoutId !== null) {
    const found = await db.query('select 1 as one from all_checkouts where id = $1', [checkoutId])
    if (found.length === 0) return []
  }
  return await db.query<Row>(inBoth(sql), values)
}

/** Which of these checkouts there are, in either place. */
export async function findAnywhere(
  db: Pick<Database, 'query'>,
  checkoutIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ id: string }>(
    `select i.id from unnest($1::text[]) as i (id)
     cross join lateral (select 1 from all_checkouts c where c.id = i.id limit 1) c`,
    [checkoutIds],
  )
  return new Set(rows.map(({ id }) => id))
}

/** The next checkout in a range of ids that has ended and lies where it was made. */
export async function findEnded(db: Database, after: string, before: string): Promise<string | null> {
  const [row] = await db.query<{ id: string }>(
    `select id from checkouts where id > $1 and id < $2 and status in ('COMPLETED', 'EXPIRED', 'CANCELED')
     order by id limit 1`,
    [after, before],
  )
  return row?.id ?? null
}

/** Makes the tables for the month of this checkout, if they are missing. */
export async function openMonth(db: Database, checkoutId: string): Promise<boolean> {
  const [row] = await db.query<{ made: boolean }>('select open_archive_month($1) as made', [checkoutId])
  return row?.made ?? false
}

export type Moved = {
  /** How many checkouts were looked at, of which one month's are looked at together. */
  readonly looked: number
  readonly moved: number
  readonly lastId: string | null
}

export async function moveEnded(
  tx: Reader,
  range: { readonly from: string; readonly before: string; readonly days: number; readonly limit: number },
): Promise<Moved> {
  const [row] = await tx.query<Moved>(
    'select looked, moved, last_id as "lastId" from archive_checkouts($1, $2, $3, $4)',
    [range.from, range.before, range.days, range.limit],
  )
  return row ?? { looked: 0, moved: 0, lastId: null }
}

export type Settler = { readonly network: string; readonly address: string }

/** Settlers of which a transaction was made, in order. */
export async function listSettlers(db: Database): Promise<Settler[]> {
  return await db.query<Settler>('select network, address from settlers order by network, address')
}

/** From which nonce to look on, and whether what follows is too young. */
export type SentPlace = { readonly from: string; readonly isDone: boolean }

/** Moves a settler's transactions whose payments are all in the archive, some from a nonce on. */
export async function moveTransactions(
  db: Reader,
  { network, address }: Settler,
  range: { readonly from: string; readonly days: number; readonly limit: number },
): Promise<SentPlace> {
  const [row] = await db.query<SentPlace>(
    'select next_nonce as "from", is_done as "isDone" from archive_transactions($1, $2, $3, $4, $5)',
    [network, address, range.from, range.days, range.limit],
  )
  // Nothing if a restored database is being compared, or another process is at it.
  return row ?? { from: range.from, isDone: true }
}

/**
 * Moves these checkouts out of the archive, as far as they are in it. If another transaction was faster, it has done so
 * once this returns: so look again in any case.
 */
export async function bringBack(tx: Reader, checkoutIds: readonly string[]): Promise<void> {
  await tx.query('select bring_back($1)', [checkoutIds])
}

/** The same for the checkouts that these transactions paid. */
export async function bringBackPaidBy(tx: Reader, transactionHashes: readonly string[]): Promise<void> {
  await tx.query(
    `select bring_back(array(select distinct checkout_id from archived_credits
       where transaction_hash = any($1)))`,
    [transactionHashes],
  )
}

/**
 * Locks a checkout, wherever it is, so that it stays where it is written to until the transaction ends. Locking comes
 * first: whoever moves it to the archive meanwhile is waited for.
 */
export async function holdCheckout(tx: Transaction, checkoutId: string): Promise<void> {
  const lock = () => tx.query('select 1 as one from checkouts where id = $1 for no key update', [checkoutId])
  if ((await lock()).length > 0) return
  await bringBack(tx, [checkoutId])
  await lock()
}
