import type { Database } from '../database/db.ts'

/** A wallet as the directory names it. */
type Named = { readonly scope: string; readonly address: string }

/** The wallets that another cell owns. Few: what moved to another cell after the backup that was restored here. */
export async function listElsewhere(db: Database): Promise<Named[]> {
  return await db.query<Named>(
    `select distinct s.mode || ' ' || w.family as scope, w.pay_to as address
     from wallets w join stores s on s.id = w.store_id where w.elsewhere`,
  )
}

/**
 * Writes whether another cell owns these wallets, whichever stores have them. Their stores get a new revision, so that
 * checkouts that were computed before are not created. Stores are locked first, as by whatever else changes a wallet.
 */
export async function writeElsewhere(
  db: Database,
  wallets: readonly Named[],
  isElsewhere: boolean,
): Promise<void> {
  await db.query(
    `with found as (
       select w.id, w.store_id from json_to_recordset($1) as i (scope text, address text)
       join wallets w on w.pay_to = i.address and w.elsewhere <> $2
       join stores s on s.id = w.store_id and s.mode || ' ' || w.family = i.scope
     ), locked as materialized (
       select s.id from stores s where s.id in (select store_id from found) order by s.id for no key update
     ), written as (
       update wallets w set elsewhere = $2 from found f join locked l on l.id = f.store_id where w.id = f.id
     )
     update stores s set revision = revision + 1 where s.id in (select id from locked)`,
    [JSON.stringify(wallets), isElsewhere],
  )
}

/** Notes that this cell gives these wallets up, for stores that have retired them and where it is not noted yet. */
export async function writeReleased(db: Database, wallets: readonly Named[]): Promise<void> {
  await db.query(
    `update wallets w set released_at = clock()
     from json_to_recordset($1) as i (scope text, address text), stores s
     where w.pay_to = i.address and s.id = w.store_id and s.mode || ' ' || w.family = i.scope
       and (w.released_at is null or w.released_at < w.retired_at) and w.retired_at is not null`,
    [JSON.stringify(wallets)],
  )
}
