import assert from 'node:assert/strict'
import type { Database, Transaction } from '../database/db.ts'
import type { Basis, Claim } from './directory.ts'

/** SQL for the directory's own database. */
type Reader = Database | Transaction

/** A cell as it presents itself: another database with its tag is not the cell. */
export type Self = { readonly tag: string; readonly identity: string }

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
  /** Null: known by name only. */
  readonly identity: string | null
  /** A copy of its database reports beside it. */
  readonly isDoubled: boolean
  readonly wallets: number
  readonly settlers: number
}

/** SQL: the epoch, if claims are granted in it. */
const ready =
  'select e.number from epoch e where not exists (select 1 from cells c where c.asserted_epoch < e.number)'

/** SQL: whether a database is the cell that it says it is, and the only one. Checked by whatever claims or gives up. */
const isSelf = (tag: string, identity: string) =>
  `exists (select 1 from cells s where s.tag = ${tag} and s.identity = ${identity} and not s.is_doubled)`

/**
 * Claims for a cell, or marks the cell's own claim as used. Returns the epoch, or null if it belongs to another or
 * nothing is granted now.
 */
export async function insertClaim(
  db: Reader,
  { kind, scope, address }: Claim,
  self: Self,
  basis: Basis,
): Promise<string | null> {
  const [row] = await db.query<{ epoch: string }>(
    `insert into claims as c (kind, scope, address, cell, basis, claimed_at, epoch)
     select $1, $2, $3, $4, $5, clock(), r.number from (${ready}) r where ${isSelf('$4', '$6')}
     on conflict (kind, scope, address) do update set idle_at = null, epoch = excluded.epoch where c.cell = excluded.cell
     returning c.epoch`,
    [kind, scope, address, self.tag, basis, self.identity],
  )
  return row?.epoch ?? null
}

/** Marks the cell's own claim as used. Null if there is none, or nothing is granted now. */
export async function touchClaim(
  db: Reader,
  { kind, scope, address }: Claim,
  self: Self,
): Promise<string | null> {
  const [row] = await db.query<{ epoch: string }>(
    `update claims c set idle_at = null, epoch = r.number from (${ready}) r
     where c.kind = $1 and c.scope = $2 and c.address = $3 and c.cell = $4 and ${isSelf('$4', '$5')}
     returning c.epoch`,
    [kind, scope, address, self.tag, self.identity],
  )
  return row?.epoch ?? null
}

export type Owner = {
  /** Null: nobody. */
  readonly cell: string | null
  readonly isReady: boolean
  /** Whether the directory knows the cell that asks. */
  readonly isKnown: boolean
  /** Whether another database than the one that asks is that cell. */
  readonly isOther: boolean
  readonly isDoubled: boolean
}

export async function readOwner(db: Reader, { kind, scope, address }: Claim, asking: Self): Promise<Owner> {
  const [row] = await db.query<Owner>(
    `select exists (${ready}) as "isReady", s.tag is not null as "isKnown",
       coalesce(s.identity <> $5, false) as "isOther", coalesce(s.is_doubled, false) as "isDoubled",
       (select cell from claims where kind = $1 and scope = $2 and address = $3) as cell
     from epoch left join cells s on s.tag = $4`,
    [kind, scope, address, asking.tag, asking.identity],
  )
  assert(row, 'the migration inserts the only epoch')
  return row
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
  self: Self,
  basis: Basis,
  epoch: string,
): Promise<Claim[]> {
  return await db.query<Claim>(
    `insert into claims as c (kind, scope, address, cell, basis, claimed_at, epoch)
     select i.kind, i.scope, i.address, $2, $3, clock(), $4
     from (select * from json_to_recordset($1) as i (kind text, scope text, address text) order by kind, scope, address) i
     where exists (select 1 from cells s where s.tag = $2 and s.identity = $5)
     on conflict (kind, scope, address) do update
       set idle_at = null, epoch = excluded.epoch, cell = excluded.cell,
         basis = case when c.cell = excluded.cell then c.basis else excluded.basis end
       where c.cell = excluded.cell or c.epoch < excluded.epoch
     returning c.kind, c.scope, c.address`,
    [JSON.stringify(claims), self.tag, basis, epoch, self.identity],
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
  self: Self,
  after: Claim | null,
  idleHours: number,
  limit: number,
): Promise<OwnClaim[]> {
  return await db.query<OwnClaim>(
    `select kind, scope, address, idle_at::text as "idleAt",
       coalesce(idle_at <= clock() - make_interval(hours => $5), false) as "isOver"
     from claims where cell = $1 and (kind, scope, address) > ($2, $3, $4) and ${isSelf('$1', '$7')}
     order by kind, scope, address limit $6`,
    [self.tag, after?.kind ?? '', after?.scope ?? '', after?.address ?? '', idleHours, limit, self.identity],
  )
}

/** Notes which of a cell's claims have no use, and since when. */
export async function writeIdle(
  db: Database,
  self: Self,
  claims: readonly Claim[],
  isIdle: boolean,
): Promise<void> {
  await db.query(
    `update claims c set idle_at = case when $3 then coalesce(c.idle_at, clock()) end
     from (select * from json_to_recordset($2) as i (kind text, scope text, address text) order by kind, scope, address) i
     where c.kind = i.kind and c.scope = i.scope and c.address = i.address and c.cell = $1
       and (c.idle_at is null) = $3 and ${isSelf('$1', '$4')}`,
    [self.tag, JSON.stringify(claims), isIdle, self.identity],
  )
}

/** Gives up claims that are still marked as they were when somebody looked. Returns those that are gone. */
export async function deleteClaims(db: Database, self: Self, claims: readonly OwnClaim[]): Promise<Claim[]> {
  return await db.query<Claim>(
    `delete from claims c using json_to_recordset($2) as i (kind text, scope text, address text, "idleAt" text)
     where c.kind = i.kind and c.scope = i.scope and c.address = i.address and c.cell = $1
       and c.idle_at = i."idleAt"::timestamptz and ${isSelf('$1', '$3')}
     returning c.kind, c.scope, c.address`,
    [self.tag, JSON.stringify(claims), self.identity],
  )
}
