import type { Database, Transaction } from '../database/db.ts'
import type { Basis, Claim } from './directory.ts'

/** SQL for the directory's own database. */
type Reader = Database | Transaction

export type Cell = {
  readonly tag: string
  readonly apiUrl: string
  readonly consoleUrl: string
  readonly takesStores: boolean
  readonly stores: number
  readonly paymentsPerHour: number
  readonly seenAt: Date | null
  /** Whether it has asserted what it has in the present epoch. */
  readonly isAsserted: boolean
  readonly adoptedAt: Date | null
  readonly wallets: number
  readonly settlers: number
}

/** SQL: the epoch, if claims are granted in it. */
const ready =
  'select e.number from epoch e where not exists (select 1 from cells c where c.asserted_epoch < e.number)'

/**
 * Claims for a cell, or marks the cell's own claim as used. Returns the epoch, or null if it belongs to another or
 * nothing is granted now.
 */
export async function insertClaim(
  db: Reader,
  { kind, scope, address }: Claim,
  cell: string,
  basis: Basis,
): Promise<string | null> {
  const [row] = await db.query<{ epoch: string }>(
    `insert into claims as c (kind, scope, address, cell, basis, claimed_at, epoch)
     select $1, $2, $3, $4, $5, clock(), r.number from (${ready}) r
     on conflict (kind, scope, address) do update set idle_at = null, epoch = excluded.epoch where c.cell = excluded.cell
     returning c.epoch`,
    [kind, scope, address, cell, basis],
  )
  return row?.epoch ?? null
}

/** Marks the cell's own claim as used. Null if there is none, or nothing is granted now. */
export async function touchClaim(
  db: Reader,
  { kind, scope, address }: Claim,
  cell: string,
): Promise<string | null> {
  const [row] = await db.query<{ epoch: string }>(
    `update claims c set idle_at = null, epoch = r.number from (${ready}) r
     where c.kind = $1 and c.scope = $2 and c.address = $3 and c.cell = $4 returning c.epoch`,
    [kind, scope, address, cell],
  )
  return row?.epoch ?? null
}

export type Owner = {
  /** Null: nobody. */
  readonly cell: string | null
  readonly isReady: boolean
  /** Whether the directory knows the cell that asks. */
  readonly isKnown: boolean
}

export async function readOwner(db: Reader, { kind, scope, address }: Claim, asking: string): Promise<Owner> {
  const [row] = await db.query<Owner>(
    `select exists (${ready}) as "isReady", exists (select 1 from cells where tag = $4) as "isKnown",
       (select cell from claims where kind = $1 and scope = $2 and address = $3) as cell`,
    [kind, scope, address, asking],
  )
  return row ?? { cell: null, isReady: false, isKnown: false }
}

/** The owners of many claims, in no order. */
export async function listOwners(
  db: Reader,
  claims: readonly Claim[],
): Promise<(Claim & { readonly cell: string })[]> {
  return await db.query<Claim & { cell: string }>(
    `select c.kind, c.scope, c.address, c.cell
     from json_to_recordset($1) as i (kind text, scope text, address text)
     join claims c on c.kind = i.kind and c.scope = i.scope and c.address = i.address`,
    [JSON.stringify(claims)],
  )
}

/** Writes what a cell uses. Returns those that it has now; the others belong to another cell. */
export async function assertClaims(
  db: Reader,
  claims: readonly Claim[],
  cell: string,
  basis: Basis,
  epoch: string,
): Promise<Claim[]> {
  return await db.query<Claim>(
    `insert into claims as c (kind, scope, address, cell, basis, claimed_at, epoch)
     select i.kind, i.scope, i.address, $2, $3, clock(), $4
     from (select * from json_to_recordset($1) as i (kind text, scope text, address text) order by kind, scope, address) i
     on conflict (kind, scope, address) do update
       set idle_at = null, epoch = excluded.epoch, cell = excluded.cell,
         basis = case when c.cell = excluded.cell then c.basis else excluded.basis end
       where c.cell = excluded.cell or c.epoch < excluded.epoch
     returning c.kind, c.scope, c.address`,
    [JSON.stringify(claims), cell, basis, epoch],
  )
}

/** A cell's claim, with the time since which it has had no use. */
export type OwnClaim = Claim & {
  readonly idleAt: string | null
  readonly isOver: boolean
}

/** A page of a cell's claims, in the order of their keys. */
export async function listOwnClaims(
  db: Database,
  cell: string,
  after: Claim | null,
  idleHours: number,
  limit: number,
): Promise<OwnClaim[]> {
  return await db.query<OwnClaim>(
    `select kind, scope, address, idle_at::text as "idleAt",
       coalesce(idle_at <= clock() - make_interval(hours => $5), false) as "isOver"
     from claims where cell = $1 and (kind, scope, address) > ($2, $3, $4)
     order by kind, scope, address limit $6`,
    [cell, after?.kind ?? '', after?.scope ?? '', after?.address ?? '', idleHours, limit],
  )
}

/** Notes which of a cell's claims have no use, and since when. */
export async function writeIdle(
  db: Database,
  cell: string,
  claims: readonly Claim[],
  isIdle: boolean,
): Promise<void> {
  await db.query(
    `update claims c set idle_at = case when $3 then coalesce(c.idle_at, clock()) end
     from (select * from json_to_recordset($2) as i (kind text, scope text, address text) order by kind, scope, address) i
     where c.kind = i.kind and c.scope = i.scope and c.address = i.address and c.cell = $1
       and (c.idle_at is null) = $3`,
    [cell, JSON.stringify(claims), isIdle],
  )
}

/** Gives up claims that are still marked as they were when somebody looked. Returns those that are gone. */
export async function deleteClaims(
  db: Database,
  cell: string,
  claims: readonly OwnClaim[],
): Promise<Claim[]> {
  return await db.query<Claim>(
    `delete from claims c using json_to_recordset($2) as i (kind text, scope text, address text, "idleAt" text)
     where c.kind = i.kind and c.scope = i.scope and c.address = i.address and c.cell = $1
       and c.idle_at = i."idleAt"::timestamptz
     returning c.kind, c.scope, c.address`,
    [cell, JSON.stringify(claims)],
  )
}
