import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { type Database, isReachable } from '../database/db.ts'
import { lockCounters } from '../events/assign-sequence.ts'
import { isId, type StoreId } from '../ids.ts'
import { networksOf } from '../payments/credits/rows.ts'
import { type Bookable, book } from './book.ts'

/** Both bound how long one run takes. With fewer turns waiting, everyone has a turn in each run. */
const turnsPerRun = 100
const itemsPerTurn = 50
/** How long items of stores whose booking failed are tried one by one before the run ends. */
const aloneMsMax = 5_000
/** What was refused is tried again after this time, and after twice as long each time that it is refused again. */
const refusedSecondsMin = 2
const refusedSecondsMax = 3_600
/** Enough to recognise which are concerned. */
const itemsLogged = 10

/** Where the last run stopped. The next one continues there, so that everyone has a turn. */
export type BookingPass = { after: string }

/**
 * Books what no event tells of: payments that complete no checkout, once they are final or gone. A trigger on `credits`
 * queues them. A payment without a checkout is booked by every store that owns its wallet.
 *
 * Stores take turns, and each books in a transaction of its own, under its counter. If that fails, whatever the reason,
 * its items are tried one by one, and those that fail are put off. Items of a store whose counter another process holds
 * queue again. Neither keeps other items waiting. An item leaves the queue once every store has booked it; booking again does
 * nothing, so a crash in between loses and doubles nothing. Returns whether there is more to do at once.
 */
export async function bookDue(ctx: Context, pass: BookingPass = { after: '' }): Promise<boolean> {
  const due = await takeTurns(ctx.db, pass)
  const concerned = await readStores(ctx.db, [...new Set(due.map(({ item }) => item))])
  const storesOf = Map.groupBy(concerned, ({ storeId }) => storeId)
  const held = new Set<string>()
  const failed: Subject[] = []
  for (const [storeId, items] of storesOf) {
    const outcome = await tryToBook(ctx, items)
    if (outcome === 'held') for (const { item } of items) held.add(item)
    else if (outcome !== 'booked') failed.push(...items.map(({ item }) => ({ item, storeId })))
  }
  const refused = await bookAlone(ctx, failed, held)
  const {
    done = [],
    again = [],
    later = [],
  } = Object.groupBy(due, ({ item }) => (refused.has(item) ? 'later' : held.has(item) ? 'again' : 'done'))
  if (done.length > 0) {
    crashPoint(ctx, 'book-before-done')
    await ctx.db.query('delete from movements_due where id = any($1)', [idsOf(done)])
  }
  if (again.length > 0) await queueAgain(ctx.db, idsOf(again))
  if (later.length > 0) await delay(ctx.db, idsOf(later))
  return done.length > 0 || pass.after !== ''
}

type Due = { readonly id: string; readonly item: string }
type Subject = { readonly item: string; readonly storeId: StoreId }

function idsOf(due: readonly Due[]): string[] {
  return due.map(({ id }) => id)
}

/** Books items of one store. An error is returned if it is theirs, not that of a database that cannot be reached. */
async function tryToBook(
  ctx: Context,
  subjects: readonly Subject[],
): Promise<'booked' | 'held' | { readonly error: unknown }> {
  try {
    return await ctx.db.transaction(async (tx) => {
      const locked = await lockCounters(tx, [...new Set(subjects.map(({ storeId }) => storeId))])
      if (locked.length === 0) return 'held'
      await book(ctx, tx, subjects.map(toBookable))
      crashPoint(ctx, 'book-before-commit')
      return 'booked'
    })
  } catch (error) {
    if (!(await isReachable(ctx.db))) throw error
    return { error }
  }
}

/** Returns the items that are refused. Adds to `held` those that must be tried again. */
async function bookAlone(
  ctx: Context,
  subjects: readonly Subject[],
  held: Set<string>,
): Promise<ReadonlySet<string>> {
  const end = ctx.now().getTime() + aloneMsMax
  const refused: (Subject & { readonly error: unknown })[] = []
  for (const subject of subjects) {
    const outcome = ctx.now().getTime() > end ? 'held' : await tryToBook(ctx, [subject])
    if (outcome === 'held') held.add(subject.item)
    else if (outcome !== 'booked') refused.push({ ...subject, error: outcome.error })
  }
  const [first] = refused
  if (first)
    ctx.log.error(
      {
        items: refused.slice(0, itemsLogged).map(({ item }) => item),
        storeIds: [...new Set(refused.map(({ storeId }) => storeId))].slice(0, itemsLogged),
        count: refused.length,
        err: first.error,
      },
      'some payments cannot be booked, so they are missing in their stores’ books; all others are booked, and these are tried again within an hour: repair what the error names, and leave movements_due as it is',
    )
  return new Set(refused.map(({ item }) => item))
}

function toBookable({ item, storeId }: Subject): Bookable {
  return isId('rf', item)
    ? { kind: 'refund', storeId, refundId: item }
    : { kind: 'payment', storeId, paymentId: item }
}

/** The oldest items of those whose turn it is next. */
async function takeTurns(db: Database, pass: BookingPass): Promise<Due[]> {
  // Walks the index from turn to turn: the cost does not depend on how much waits in each.
  const rows = await db.query<{ turn: string; id: string | null; item: string | null }>(
    `with recursive turns as (
       (select turn from movements_due where turn > $1 order by turn limit 1)
       union all
       select (select d.turn from movements_due d where d.turn > t.turn order by d.turn limit 1)
       from turns t where t.turn is not null
     )
     select t.turn, d.id, d.item from (select turn from turns where turn is not null limit $2) t
     left join lateral (select id, item from movements_due where turn = t.turn and due_at <= clock()
       order by due_at, id limit $3) d on true
     order by t.turn, d.id`,
    [pass.after, turnsPerRun, itemsPerTurn],
  )
  const turns = new Set(rows.map(({ turn }) => turn))
  pass.after = turns.size === turnsPerRun ? (rows.at(-1)?.turn ?? '') : ''
  return rows.flatMap(({ id, item }) => (id !== null && item !== null ? [{ id, item }] : []))
}

/** Lets the other items of their turns go first. */
async function queueAgain(db: Database, ids: readonly string[]): Promise<void> {
  await db.query('update movements_due set due_at = clock() where id = any($1)', [ids])
}

async function delay(db: Database, ids: readonly string[]): Promise<void> {
  await db.query(
    `update movements_due set tries = tries + 1,
       due_at = clock() + make_interval(secs => least($2 * 2 ^ least(tries, 30), $3)) where id = any($1)`,
    [ids, refusedSecondsMin, refusedSecondsMax],
  )
}

/** The stores to which these payments or refunds belong, or in whose books they are. */
async function readStores(db: Database, items: readonly string[]): Promise<Subject[]> {
  if (items.length === 0) return []
  return await db.query<Subject>(
    `select i.item, o.store_id as "storeId" from unnest($1::text[]) with ordinality as i (item, place)
     cross join lateral (
       select k.store_id from credits k where k.payment_id = i.item and k.orphaned_at is null and k.checkout_id is not null
       union
       select w.store_id from credits k cross join lateral payment_owners(k.pay_to, k.included_at,
         case when k.network = any($2) then 'live' else 'test' end) w
       where k.payment_id = i.item and k.orphaned_at is null and k.checkout_id is null
       union
       select m.store_id from movements m where m.payment_id = i.item
       union
       select r.store_id from refunds r where r.id = i.item
     ) o
     where o.store_id is not null order by i.place`,
    [items, networksOf('live')],
  )
}
