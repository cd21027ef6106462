import type { Database, Transaction } from '../database/db.ts'
import type { Cell, Self } from './rows.ts'

/** SQL for the directory's cells and its epoch. */
type Reader = Database | Transaction

export async function listCells(db: Database): Promise<Cell[]> {
  return await db.query<Cell>(
    `select c.tag, c.api_url as "apiUrl", c.console_url as "consoleUrl", c.takes_stores as "takesStores",
       c.stores::integer, c.payments_per_hour::integer as "paymentsPerHour", c.seen_at as "seenAt",
       c.asserted_epoch = e.number as "isAsserted", c.adopted_at as "adoptedAt",
       c.identity, c.is_doubled as "isDoubled",
       (select count(*) from claims k where k.cell = c.tag and k.kind = 'wallet')::integer as wallets,
       (select count(*) from claims k where k.cell = c.tag and k.kind = 'settler')::integer as settlers
     from cells c cross join epoch e order by c.tag`,
  )
}

/** Locks the epoch, so that cells are added and epochs raised one after the other. */
export async function lockEpoch(tx: Transaction): Promise<string> {
  const [row] = await tx.query<{ number: string }>('select number from epoch for update')
  return row?.number ?? '1'
}

export async function raiseEpoch(tx: Transaction): Promise<string> {
  const [row] = await tx.query<{ number: string }>(
    'update epoch set number = number + 1, raised_at = clock() returning number',
  )
  return row?.number ?? '1'
}

/** Other cells that have not asserted what they have in the present epoch. */
export async function listWaiting(db: Reader, but: string): Promise<string[]> {
  const rows = await db.query<{ tag: string }>(
    'select c.tag from cells c join epoch e on c.asserted_epoch < e.number where c.tag <> $1 order by c.tag',
    [but],
  )
  return rows.map(({ tag }) => tag)
}

/** Returns how often the cell has reported; null if another database is that cell. */
export async function writeCell(
  tx: Transaction,
  cell: Self & Pick<Cell, 'apiUrl' | 'consoleUrl'>,
  epoch: string,
): Promise<string | null> {
  const [row] = await tx.query<{ reports: string }>(
    `insert into cells as c (tag, api_url, console_url, asserted_epoch, adopted_at, identity)
     values ($1, $2, $3, $4, clock(), $5)
     on conflict (tag) do update set api_url = excluded.api_url, console_url = excluded.console_url,
       asserted_epoch = excluded.asserted_epoch, adopted_at = coalesce(c.adopted_at, excluded.adopted_at),
       identity = excluded.identity
       where coalesce(c.identity, excluded.identity) = excluded.identity
     returning reports`,
    [cell.tag, cell.apiUrl, cell.consoleUrl, epoch, cell.identity],
  )
  return row?.reports ?? null
}

/** Adds cells that a restored directory does not know: nothing is granted until they have asserted what they have. */
export async function insertMissing(tx: Transaction, tags: readonly string[]): Promise<void> {
  await tx.query(
    `insert into cells (tag, asserted_epoch) select tag, 0 from unnest($1::text[]) as tag on conflict do nothing`,
    [tags],
  )
}

export async function listTags(db: Reader): Promise<string[]> {
  const rows = await db.query<{ tag: string }>('select tag from cells order by tag')
  return rows.map(({ tag }) => tag)
}

/** Which database a cell is: undefined if there is no such cell, null if it is known by name only. */
export async function readIdentity(db: Reader, tag: string): Promise<string | null | undefined> {
  const [row] = await db.query<{ identity: string | null }>('select identity from cells where tag = $1', [
    tag,
  ])
  return row?.identity
}

export type Locked = {
  readonly identity: string | null
  readonly isAsserted: boolean
  /** Null: it has never reported. */
  readonly secondsSilent: number | null
}

/** Locks a cell: it can't claim anything meanwhile. */
export async function lockCell(tx: Transaction, tag: string): Promise<Locked | null> {
  const [row] = await tx.query<Locked>(
    `select c.identity, c.asserted_epoch = e.number as "isAsserted",
       extract(epoch from clock() - c.seen_at)::integer as "secondsSilent"
     from cells c cross join epoch e where c.tag = $1 for update of c`,
    [tag],
  )
  return row ?? null
}

/** How much a cell owns. */
export type Held = { readonly wallets: number; readonly settlers: number }

export async function countHeld(tx: Transaction, tag: string): Promise<Held> {
  const [row] = await tx.query<Held>(
    `select count(*) filter (where kind = 'wallet')::integer as wallets,
       count(*) filter (where kind = 'settler')::integer as settlers
     from claims where cell = $1`,
    [tag],
  )
  return row ?? { wallets: 0, settlers: 0 }
}

/** Deletes a cell and all that it owns. */
export async function deleteCell(tx: Transaction, tag: string): Promise<void> {
  await tx.query('delete from claims where cell = $1', [tag])
  await tx.query('delete from cells where tag = $1', [tag])
}

/** False if there is no such cell. */
export async function writeTakesStores(db: Database, tag: string, takes: boolean): Promise<boolean> {
  const rows = await db.query('update cells set takes_stores = $2 where tag = $1 returning tag', [tag, takes])
  return rows.length > 0
}

export type Reported = {
  readonly epoch: string
  readonly reports: string
  readonly takesStores: boolean
  readonly isAsserted: boolean
  readonly isDoubled: boolean
}

/**
 * Writes a cell's load, and its URLs, which may change. The first to report for a cell that is known by name only is that
 * cell, and is drained if it was before. Null if the directory does not know the cell, or another database is it.
 */
export async function writeReport(
  db: Database,
  cell: Self & Pick<Cell, 'apiUrl' | 'consoleUrl' | 'takesStores' | 'stores' | 'paymentsPerHour'>,
): Promise<Reported | null> {
  const [row] = await db.query<Reported>(
    `update cells c set stores = $2, payments_per_hour = $3, seen_at = clock(), reports = c.reports + 1,
       identity = $4, takes_stores = c.takes_stores and (c.identity is not null or $7),
       api_url = $5, console_url = coalesce(nullif($6, ''), c.console_url)
     from epoch e where c.tag = $1 and coalesce(c.identity, $4) = $4
     returning e.number as epoch, c.reports, c.takes_stores as "takesStores", c.asserted_epoch = e.number as "isAsserted",
       c.is_doubled as "isDoubled"`,
    [
      cell.tag,
      cell.stores,
      cell.paymentsPerHour,
      cell.identity,
      cell.apiUrl,
      cell.consoleUrl,
      cell.takesStores,
    ],
  )
  return row ?? null
}

/** Notes whether a copy of a cell's database reports beside it. */
export async function writeDoubled(db: Reader, { tag, identity }: Self, isDoubled: boolean): Promise<void> {
  await db.query('update cells set is_doubled = $3 where tag = $1 and identity = $2', [
    tag,
    identity,
    isDoubled,
  ])
}

/** Records that a cell has asserted all that it has, unless the epoch was raised meanwhile. */
export async function writeAsserted(db: Reader, { tag, identity }: Self, epoch: string): Promise<void> {
  await db.query(
    `update cells c set asserted_epoch = $2, adopted_at = coalesce(c.adopted_at, clock()) from epoch e
     where c.tag = $1 and c.identity = $3 and e.number = $2`,
    [tag, epoch, identity],
  )
}
