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
}

export async function listMonths(db: Database): Promise<StoredMonth[]> {
  return await db.query<StoredMonth>(
    `select replace(m.suffix, '_', '-') as month, nullif(m.reltuples, -1)::float8 as checkouts,
       (select sum(pg_total_relation_size(to_regclass(t.name || '_' || m.suffix)))::text
        from unnest($1::text[]) as t (name)) as bytes
     from (select right(c.relname, 7) as suffix, c.reltuples from pg_inherits i join pg_class c on c.oid = i.inhrelid
       where i.inhparent = 'archived_checkouts'::regclass) m
     order by 1`,
    [namesOf([...archivedTables, ...sentTables])],
  )
}

/** The next checkouts of a month, each with everything that is archived about it, as JSON. */
export async function readExported(
  db: Database,
  month: Month,
  after: string,
  limit: number,
): Promise<{ id: string; line: string }[]> {
  const suffix = suffixOf(month)
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

/**
 * Drops a month's tables, with those of what settlers sent then, if there is any. Readers of the archive wait for a
 * moment; if one holds it for longer, nothing is dropped.
 */
export async function dropMonth(db: Database, month: Month): Promise<void> {
  const list = (tables: readonly string[]) =>
    namesOf(tables)
      .map((name) => `${name}_${suffixOf(month)}`)
      .join(', ')
  await db.transaction((tx) =>
    tx.script(
      `set local lock_timeout = '3s'; drop table ${list(archivedTables)}; drop table if exists ${list(sentTables)}`,
    ),
  )
}
