import assert from 'node:assert/strict'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { ask, type Ownership, unavailable } from './directory.ts'

export type Reader = Database | Transaction

/** `directory_state`, the only row of its table in the cell's own database. */
export type State = {
  /** Null: this deployment has adopted no directory. */
  readonly generation: string | null
  /** Tells this database from others with the same tag. Not null if `generation` is set. */
  readonly identity: string | null
  readonly fence: string
  readonly stamp: string
  /** The stamp of a report that has no answer yet. The directory may or may not have it. */
  readonly nextStamp: string | null
  readonly takesStores: boolean
}

export const stateColumns =
  'generation, identity, fence, stamp, next_stamp as "nextStamp", takes_stores as "takesStores"'

/** SQL: random, so that two databases that start from one backup never draw the same number. */
export const step = '1 + floor(random() * 1000000000)::bigint'

export async function readState(db: Database): Promise<State> {
  const [row] = await db.query<State>(`select ${stateColumns} from directory_state`)
  assert(row, 'the migration inserts the only row')
  return row
}

/** Remembers that the directory has the stamp that was drawn, unless another process has drawn one since. */
export async function writeStamped(db: Database, nextStamp: string, takesStores: boolean): Promise<void> {
  await db.query(
    'update directory_state set stamp = next_stamp, next_stamp = null, takes_stores = $2 where next_stamp = $1',
    [nextStamp, takesStores],
  )
}

/** A cell as it presents itself. */
export type Self = Pick<State, 'stamp' | 'nextStamp'> & { readonly tag: string; readonly identity: string }

export function toSelf(ctx: Context, { generation, identity, stamp, nextStamp }: State): Self {
  if (generation === null || identity === null)
    throw unavailable('This cell has not adopted it: directory adopt')
  return { tag: ctx.config.cell, identity, stamp, nextStamp }
}

/** SQL: the row of the asking cell ($1 to $4); none if it is granted nothing now. */
export const grantee = `select s.tag, g.number from cells s cross join generation g
  where s.tag = $1 and s.identity = $2 and s.stamp in ($3, $4) and not s.is_contested
    and not exists (select 1 from cells c where c.generation < g.number)
  for share of s`

export const granteeValues = ({ tag, identity, stamp, nextStamp }: Self) => [tag, identity, stamp, nextStamp]

/** Why a cell is granted nothing, for operators. */
export type Obstacle = {
  readonly says: string
  readonly fix: string
  /** Whether processes of this database may run. */
  readonly mayRun: boolean
}

/** Why this cell is granted nothing now. Null if nothing stands in the way: it may have reported since it was refused. */
export async function findObstacle(ctx: Context): Promise<Obstacle | null> {
  const { tag, identity, stamp, nextStamp } = toSelf(ctx, await readState(ctx.db))
  const [row] = await ask(ctx, (directory) =>
    directory.query<{ identity: string | null; isContested: boolean; waitsFor: string[] }>(
      `select s.identity, s.is_contested or s.stamp not in ($2::bigint, coalesce($3::bigint, $2)) as "isContested",
         array(select c.tag from cells c cross join generation g
           where c.generation < g.number or (c.tag = $1 and c.stamp < $2) order by c.tag) as "waitsFor"
       from cells s where s.tag = $1`,
      [tag, stamp, nextStamp],
    ),
  )
  if (!row)
    return {
      says: `the directory does not know cell ${tag}`,
      fix: 'If the directory was restored, run: farthing-admin directory restored --cells LIST. If the cell was removed, this database must not be used: stop its serve and work. If DIRECTORY_URL names the wrong directory, correct it.',
      mayRun: false,
    }
  if (row.identity !== null && row.identity !== identity) return taken(tag)
  if (row.waitsFor.length > 0)
    return {
      says: `the directory was restored, and grants no wallets and settlers until these cells have adopted it: ${row.waitsFor.join(', ')}`,
      fix: 'Run in each: farthing-admin directory adopt. If a cell is missing in directory list, run first: directory restored --cells LIST. If one is gone for good: directory remove CELL',
      mayRun: true,
    }
  if (!row.isContested) return null
  return {
    says: 'two databases report as this cell, and it is granted no wallet or settler: this one was restored, or a copy of it runs, such as the old server after a move',
    fix: 'If a copy runs, stop its serve, work and PostgreSQL now: both send from the same settlers. Then run in the one that stays: farthing-admin directory adopt',
    mayRun: true,
  }
}

/** For an operator whose database has the same tag as another one. */
export function taken(cell: string): Obstacle {
  return {
    says: `another database is cell ${cell} in the directory; both would be paid to the same wallets`,
    fix: `Stop serve and work here, and give this one a CELL of its own, which takes a new database. If the other is gone for good, run first: farthing-admin directory remove ${cell}`,
    mayRun: false,
  }
}

export type Owner = Ownership & { readonly cell: string; readonly grants: string }

/** The owners of some wallets and settlers, in no order. */
export async function listOwners(db: Reader, some: readonly Ownership[]): Promise<Owner[]> {
  return await db.query<Owner>(
    `select o.kind, o.scope, o.address, o.cell, o.grants
     from json_to_recordset($1) as i (kind text, scope text, address text)
     join owners o on o.kind = i.kind and o.scope = i.scope and o.address = i.address`,
    [JSON.stringify(some)],
  )
}

/** How many are released in one step. */
const ownedMax = 1_000

/** The owners of these addresses. Without addresses: what a cell owns, at most as much as one step releases. */
export async function listOwned(
  db: Reader,
  cell: string,
  addresses: readonly string[] | null,
): Promise<Owner[]> {
  const condition = addresses === null ? 'o.cell = $1' : 'o.address = any ($1)'
  return await db.query<Owner>(
    `select o.kind, o.scope, o.address, o.cell, o.grants from owners o where ${condition}
     order by o.kind, o.scope, o.address limit ${ownedMax}`,
    [addresses ?? cell],
  )
}

export type Cell = {
  readonly tag: string
  readonly apiUrl: string
  readonly consoleUrl: string
  readonly takesStores: boolean
  readonly stores: number
  readonly paymentsPerHour: number
  readonly seenAt: Date | null
  /** Whether it has adopted the present generation. */
  readonly isAdopted: boolean
  /** Null: known by name only. */
  readonly identity: string | null
  readonly isContested: boolean
  readonly wallets: number
  readonly settlers: number
}

export async function listCells(db: Reader): Promise<Cell[]> {
  return await db.query<Cell>(
    `select c.tag, c.api_url as "apiUrl", c.console_url as "consoleUrl", c.takes_stores as "takesStores",
       c.stores::integer, c.payments_per_hour::integer as "paymentsPerHour", c.seen_at as "seenAt",
       c.generation = g.number as "isAdopted", c.identity, c.is_contested as "isContested",
       (select count(*) from owners o where o.cell = c.tag and o.kind = 'wallet')::integer as wallets,
       (select count(*) from owners o where o.cell = c.tag and o.kind = 'settler')::integer as settlers
     from cells c cross join generation g order by c.tag`,
  )
}

/** Locks the generation, so that cells are added and removed, and the generation raised, one after the other. */
export async function lockGeneration(tx: Transaction): Promise<string> {
  const [row] = await tx.query<{ number: string }>('select number from generation for update')
  assert(row, 'the migration inserts the only row')
  return row.number
}
