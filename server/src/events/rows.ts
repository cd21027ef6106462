import type { Actor, Event, EventType } from '@farthing/sdk'
import type { Database, Transaction } from '../database/db.ts'
import type { CheckoutId, EventId, StoreId } from '../ids.ts'

type Reader = Database | Transaction

export type EventRow = {
  id: EventId
  sequence: string
  type: EventType
  checkout_id: CheckoutId | null
  checkout_version: number | null
  actor: Actor | null
  data: Event['data']
  created_at: Date
}

export const columns = 'id, sequence, type, checkout_id, checkout_version, actor, data, created_at'

/** An event that has its number. */
export async function readEvent(db: Reader, storeId: StoreId, eventId: string): Promise<EventRow | null> {
  const [row] = await db.query<EventRow>(
    `select ${columns} from events where store_id = $1 and id = $2 and sequence is not null`,
    [storeId, eventId],
  )
  return row ?? null
}

export type LogEnd = {
  readonly epoch: number
  /** The sequence of the store's newest visible event; 0 if the log is empty. */
  readonly last: bigint
  /** Events up to this sequence may have been deleted with their checkouts. */
  readonly truncated: bigint
}

/** The sequence of each store's newest visible event. */
export async function readLastSequences(
  db: Database,
  storeIds: readonly StoreId[],
): Promise<ReadonlyMap<StoreId, bigint>> {
  const rows = await db.query<{ store_id: StoreId; last_sequence: string }>(
    'select store_id, last_sequence from event_counters where store_id = any($1)',
    [storeIds],
  )
  return new Map(rows.map((row) => [row.store_id, BigInt(row.last_sequence)]))
}

export async function readLogEnd(db: Reader, storeId: StoreId): Promise<LogEnd> {
  const [row] = await db.query<{ epoch: number; last: string | null; truncated: string | null }>(
    `select l.epoch, (select c.last_sequence from event_counters c where c.store_id = $1) as last,
       (select t.last_sequence from truncated_logs t where t.store_id = $1) as truncated
     from event_log l`,
    [storeId],
  )
  return {
    epoch: row?.epoch ?? 1,
    last: BigInt(row?.last ?? '0'),
    truncated: BigInt(row?.truncated ?? '0'),
  }
}

/**
 * Starts a new epoch of every store's log, which makes all earlier cursors invalid, and a new series of receipts. The
 * series is named for the second: the same backup may be restored twice.
 */
export async function raiseEpoch(tx: Transaction, now: Date): Promise<void> {
  const series = Math.floor(now.getTime() / 1_000)
    .toString(36)
    .toUpperCase()
  await tx.query('update event_log set epoch = epoch + 1, receipt_series = $1', [series])
}

/** Creates a store's counter, with which its log begins. */
export async function insertCounter(tx: Transaction, storeId: StoreId): Promise<void> {
  await tx.query('insert into event_counters (store_id) values ($1)', [storeId])
}

/** How many things wait, counted up to a limit, and since when the oldest has waited. */
export type Queue = { readonly count: number; readonly oldestAt: Date | null }

/** Events that have no number yet. */
export async function measureUnnumbered(db: Database, countMax: number): Promise<Queue> {
  const [row] = await db.query<Queue>(
    `select count(*)::integer as count, min(created_at) as "oldestAt"
     from (select created_at from events where sequence is null limit $1) waiting`,
    [countMax],
  )
  return row ?? { count: 0, oldestAt: null }
}

/**
 * Erases a payer, and what the store wrote about the buyer, from the events of these checkouts. Erases the payer also from
 * the events that announced payments without a checkout; `announced` has the range of ids in which each event lies.
 */
export async function eraseFromEvents(
  tx: Transaction,
  checkoutIds: readonly string[],
  payer: string,
  erased: string,
  announced: readonly { readonly id: string; readonly from: string; readonly until: string }[],
): Promise<void> {
  await tx.query(
    `update events set data = (regexp_replace(data::text, $2, $3, 'gi')::jsonb #- '{checkout,metadata}'
       #- '{checkout,successRedirectUrl}' #- '{checkout,cancelUrl}')::json
     where checkout_id = any($1)`,
    [checkoutIds, payer, erased],
  )
  await tx.query(
    `update events e set data = regexp_replace(e.data::text, $2, $3, 'gi')::json
     from json_to_recordset($1) as i (id text, "from" text, until text)
     where e.id >= i."from" and e.id < i.until and e.checkout_id is null and e.data #>> '{payment,id}' = i.id`,
    [JSON.stringify(announced), payer, erased],
  )
}

/** Erases what a store wrote about the buyer from events about links. */
export async function eraseFromLinkEvents(tx: Transaction, eventIds: readonly string[]): Promise<void> {
  await tx.query(
    `update events set data = (data::jsonb #- '{link,metadata}' #- '{link,invoice,buyerName}'
       #- '{link,invoice,buyerAddress}')::json
     where id = any($1)`,
    [eventIds],
  )
}
