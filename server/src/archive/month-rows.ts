import type { Database } from '../database/db.ts'
import { archivedTables, sentTables } from './archive.ts'
import { type Month, suffixOf } from './month.ts'

/** SQL for whole months of the archive. */
const namesOf = (tables: readonly string[]) => tables.map((table) => `archived_${table}`)

/** `checkouts` is an estimate of PostgreSQL's; null if it has made none yet. */
export type StoredMonth = {
  readonly month: Month
  readonly checkouts: number | null
  readonly bytes: string
  /** Whether a file has all of it. */
  readonly isExported: boolean
}

/** A month may hold what settlers sent, and no checkouts: theirs may have been made the month before. */
export async function listMonths(db: Database): Promise<StoredMonth[]> {
  return await db.query<StoredMonth>(
    `select n.month, coalesce(a.arrivals = a.exported_arrivals, false) as "isExported",
       case when c.oid is null then 0 else nullif(c.reltuples, -1)::float8 end as checkouts,
       (select sum(pg_total_relation_size(to_regclass(t.name || '_' || m.suffix)))::text
        from unnest($1::text[]) as t (name)) as bytes
     from (select distinct right(c.relname, 7) as suffix from pg_inherits i join pg_class c on c.oid = i.inhrelid
       where i.inhparent in ('archived_checkouts'::regclass, 'archived_transactions'::regclass)) m
     cross join lateral (select replace(m.suffix, '_', '-') as month) n
     left join pg_class c on c.oid = to_regclass('archived_checkouts_' || m.suffix)
     left join archived_months a on a.month = n.month
     order by 1`,
    [namesOf([...archivedTables, ...sentTables])],
  )
}

async function isThere(db: Database, table: string): Promise<boolean> {
  const [row] = await db.query<{ is: boolean }>('select to_regclass($1) is not null as is', [table])
  return row?.is ?? false
}

/** The next checkouts of a month, each with everything that is archived about it, as JSON. */
export async function readExported(
  db: Database,
  month: Month,
  after: string,
  limit: number,
): Promise<{ id: string; line: string }[]> {
  const suffix = suffixOf(month)
  if (!(await isThere(db, `archived_checkouts_${suffix}`))) return []
  const parts = archivedTables
    .filter((table) => table !== 'checkouts')
    .map(
      (
        table,
      ) => `'${table}', (select coalesce(jsonb_agg(to_jsonb(t)), '[]') from archived_${table}_${suffix} t
         where t.checkout_id = c.id)`,
    )
  return await db.query(
    `select c.id, jsonb_build_object('checkout', to_jsonb(c), ${parts.join(', ')}, 'refunds',
       (select coalesce(jsonb_agg(to_jsonb(r)), '[]') from refunds r where r.checkout_id = c.id))::text as line
     from archived_checkouts_${suffix} c where c.id > $1 order by c.id limit $2`,
    [after, limit],
  )
}

export type SentKey = { readonly network: string; readonly settler: string; readonly nonce: string }

/** The next transactions that settlers made in a month, each with its calls and signed bytes, as JSON. */
export async function readExportedSent(
  db: Database,
  month: Month,
  after: SentKey,
  limit: number,
): Promise<(SentKey & { line: string })[]> {
  const suffix = suffixOf(month)
  if (!(await isThere(db, `archived_transactions_${suffix}`))) return []
  return await db.query(
    `select t.network, t.settler, t.nonce, jsonb_build_object('transaction', to_jsonb(t), 'calls',
       (select coalesce(jsonb_agg(to_jsonb(c) order by c.place), '[]') from archived_transaction_calls_${suffix} c
        where c.settler = t.settler and c.settler_nonce = t.nonce and c.network = t.network), 'broadcasts',
       (select coalesce(jsonb_agg(to_jsonb(b)), '[]') from archived_broadcasts_${suffix} b
        where b.network = t.network and b.settler = t.settler and b.nonce = t.nonce))::text as line
     from archived_transactions_${suffix} t where (t.network, t.settler, t.nonce) > ($1, $2, $3::bigint)
     order by t.network, t.settler, t.nonce limit $4`,
    [after.network, after.settler, after.nonce, limit],
  )
}

/** How many times rows have come to a month. All that came with these can be read from now on. */
export async function readArrivals(db: Database, month: Month): Promise<string> {
  const [row] = await db.query<{ arrivals: string }>(
    'select arrivals from archived_months where month = $1',
    [month],
  )
  return row?.arrivals ?? '0'
}

/** Writes that a file has all that had come to a month with this many arrivals. */
export async function writeExported(db: Database, month: Month, arrivals: string): Promise<void> {
  await db.query(
    `insert into archived_months (month, arrivals, exported_arrivals) values ($1, $2, $2)
     on conflict (month) do update set exported_arrivals = excluded.exported_arrivals`,
    [month, arrivals],
  )
}

/**
 * Drops a month's tables, with those of what settlers sent then. If an export is required, and something has come since
 * the last one, it drops nothing and returns false. Readers of the archive wait for a moment; if one holds it for longer,
 * nothing is dropped.
 */
export async function dropMonth(
  db: Database,
  month: Month,
  { isExportRequired }: { readonly isExportRequired: boolean },
): Promise<boolean> {
  const tables = namesOf([...archivedTables, ...sentTables]).map((name) => `${name}_${suffixOf(month)}`)
  return await db.transaction(async (tx) => {
    // Whoever moves something here or brings it back holds this table until its commit.
    await tx.script(
      "set local lock_timeout = '3s'; lock table only archived_checkouts in access exclusive mode",
    )
    const exported = await tx.query(
      'select 1 as one from archived_months where month = $1 and arrivals = exported_arrivals',
      [month],
    )
    if (isExportRequired && exported.length === 0) return false
    await tx.script(`drop table if exists ${tables.join(', ')}`)
    return true
  })
}
