import type { Actor } from '@farthing/sdk'
import type { Database, Transaction } from '../database/db.ts'
import type { MemberId, StoreId, WalletChangeId, WalletId } from '../ids.ts'
import type { Family } from '../networks.ts'
import { isWaiting } from './rows.ts'

type Named = { readonly id: WalletId; readonly address: string }

/** A change of the wallet that a store's new checkouts are paid to; see change.ts. */
export type WalletChange = {
  readonly id: WalletChangeId
  readonly storeId: StoreId
  readonly family: Family
  /** To make the wallet current, or to retire it while it is. */
  readonly kind: 'use' | 'retire'
  readonly wallet: Named & { readonly isProven: boolean }
  readonly actor: Actor
  readonly askedAt: Date
  /** Until when an owner can confirm it; null if it needs nobody. */
  readonly expiresAt: Date | null
  readonly isWaiting: boolean
  /** The place among the store's changes that took effect, and when it did. */
  readonly made: number | null
  readonly madeAt: Date | null
  readonly confirmedBy: Actor | null
  /** The current wallet before it took effect, and after. */
  readonly previous: Named | null
  readonly next: Named | null
  readonly isUndoable: boolean
  readonly undoneAt: Date | null
  readonly undoneBy: Actor | null
}

type ChangeRow = {
  id: WalletChangeId
  store_id: StoreId
  family: Family
  kind: WalletChange['kind']
  wallet: WalletChange['wallet']
  actor: Actor
  asked_at: Date
  expires_at: Date | null
  is_waiting: boolean
  made: number | null
  made_at: Date | null
  confirmed_by: Actor | null
  previous: Named | null
  next: Named | null
  is_undoable: boolean
  undone_at: Date | null
  undone_by: Actor | null
}

/** How long any owner can undo a change: a night and a flight, so that somebody is awake in between. */
const undoHours = 24

/** What waits, or was made or undone within a day, was asked for since then: a change waits for seven days at most. */
const sinceDays = 9
const isYoung = `c.asked_at > clock() - interval '${sinceDays} days'`

const named = (alias: string, more = '') =>
  `(select json_build_object('id', x.id, 'address', x.address${more}) from wallets x where x.id = c.${alias})`

const isRecent = `c.made_at > clock() - interval '${undoHours} hours'`

const columns = `c.*, coalesce(${isWaiting}, false) as is_waiting,
  coalesce(c.undone_at is null and ${isRecent}, false) as is_undoable,
  ${named('wallet_id', ", 'isProven', x.proven_at is not null")} as wallet,
  ${named('previous_id')} as previous, ${named('next_id')} as next`

export async function insertChange(
  tx: Transaction,
  change: Pick<WalletChange, 'id' | 'storeId' | 'family' | 'kind' | 'actor'> & {
    readonly walletId: WalletId
    /** How long it waits for an owner; null if it needs nobody. */
    readonly waitsDays: number | null
  },
): Promise<void> {
  await tx.query(
    `insert into wallet_changes (id, store_id, family, kind, wallet_id, actor, asked_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, clock(), clock() + make_interval(days => $7))`,
    [
      change.id,
      change.storeId,
      change.family,
      change.kind,
      change.walletId,
      JSON.stringify(change.actor),
      change.waitsDays,
    ],
  )
}

/** Records that a change took effect. The caller holds the store's lock, so numbers are given in that order. */
export async function markMade(
  tx: Transaction,
  change: Pick<WalletChange, 'id' | 'storeId'>,
  confirmedBy: Actor | null,
  previousId: WalletId | null,
  nextId: WalletId | null,
): Promise<void> {
  await tx.query(
    `update wallet_changes set made_at = clock(), confirmed_by = $3, previous_id = $4, next_id = $5,
       made = 1 + (select coalesce(max(o.made), 0) from wallet_changes o where o.store_id = $2)
     where id = $1`,
    [change.id, change.storeId, confirmedBy && JSON.stringify(confirmedBy), previousId, nextId],
  )
}

export async function readChange(
  tx: Transaction,
  storeId: StoreId,
  changeId: string,
): Promise<WalletChange | null> {
  const [row] = await tx.query<ChangeRow>(
    `select ${columns} from wallet_changes c where c.store_id = $1 and c.id = $2`,
    [storeId, changeId],
  )
  return row ? toChange(row) : null
}

/** The family's change that waits for an owner. */
export async function findWaiting(
  tx: Transaction,
  storeId: StoreId,
  family: Family,
): Promise<WalletChange | null> {
  const [row] = await tx.query<ChangeRow>(
    `select ${columns} from wallet_changes c where c.store_id = $1 and c.family = $2 and ${isWaiting}`,
    [storeId, family],
  )
  return row ? toChange(row) : null
}

/**
 * Ends the family's waiting change, or one that waited too long, without effect. A wallet that was never current retires
 * with it, unless it is `keptId`. Returns the wallet if the change was still waiting.
 */
export async function endWaiting(
  tx: Transaction,
  storeId: StoreId,
  family: Family,
  keptId: WalletId | null,
): Promise<WalletId | null> {
  const [row] = await tx.query<{ wallet_id: WalletId; was_waiting: boolean }>(
    `with ended as (
       update wallet_changes set ended_at = clock()
       where store_id = $1 and family = $2 and made is null and ended_at is null
       returning wallet_id, expires_at > clock() as was_waiting
     ), retired as (
       update wallets w set retired_at = clock() from ended e
       where w.id = e.wallet_id and w.registration = 0 and w.retired_at is null and w.id is distinct from $3
     )
     select * from ended`,
    [storeId, family, keptId],
  )
  return row?.was_waiting ? row.wallet_id : null
}

export async function findCurrent(tx: Transaction, storeId: StoreId, family: Family): Promise<Named | null> {
  const [row] = await tx.query<Named>(
    `select id, address from wallets
     where store_id = $1 and family = $2 and retired_at is null and registration > 0
     order by registration desc limit 1`,
    [storeId, family],
  )
  return row ?? null
}

/** What was asked for within a day and not undone since, and what could not even be asked for, for want of a claim. */
export async function countRecent(tx: Transaction, storeId: StoreId): Promise<number> {
  const [row] = await tx.query<{ count: number }>(
    `select (select count(*) from wallet_changes
         where store_id = $1 and asked_at > clock() - interval '24 hours' and undone_at is null)::integer
       + (select count(*) from wallets
         where store_id = $1 and unclaimed and created_at > clock() - interval '24 hours')::integer as count`,
    [storeId],
  )
  return row?.count ?? 0
}

/** Marks a change of a family and all that came after it as undone. Those whose wallet is not `keptAddress` may cancel. */
export async function writeUndone(
  tx: Transaction,
  { storeId, family, made }: Pick<WalletChange, 'storeId' | 'family' | 'made'>,
  undoneBy: Actor,
  cancelsOpen: boolean,
  keptAddress: string | null,
): Promise<{ readonly walletId: WalletId; readonly kind: WalletChange['kind'] }[]> {
  return await tx.query<{ walletId: WalletId; kind: WalletChange['kind'] }>(
    `update wallet_changes c set undone_at = clock(), undone_by = $4,
       cancel_at = case when $5::boolean and exists (select 1 from wallets n
         where n.id = c.next_id and n.address is distinct from $6) then clock() end
     where c.store_id = $1 and c.family = $2 and c.made >= $3 and c.undone_at is null
     returning c.wallet_id as "walletId", c.kind`,
    [storeId, family, made, JSON.stringify(undoneBy), cancelsOpen, keptAddress],
  )
}

/** What owners of the store see: changes that wait, and those of the last day, newest first. */
export async function listChanges(db: Database, storeId: StoreId): Promise<WalletChange[]> {
  const rows = await db.query<ChangeRow>(
    `select ${columns} from wallet_changes c where c.store_id = $1 and ${isYoung}
       and (${isWaiting} or ${isRecent})
     order by c.made desc nulls first, c.family`,
    [storeId],
  )
  return rows.map(toChange)
}

/** A change that a member, as an owner of its store, has not seen yet. `at` is when it last mattered. */
export type News = WalletChange & { readonly storeName: string; readonly at: Date }

/** SQL: as exactly as a browser can give it back. */
const happenedAt = `date_trunc('milliseconds', greatest(c.asked_at, c.made_at, c.undone_at))`

export async function listNews(
  db: Database,
  storeId: StoreId,
  memberId: MemberId,
  limit: number,
): Promise<News[]> {
  const rows = await db.query<ChangeRow & { store_name: string; at: Date }>(
    `select ${columns}, s.name as store_name, ${happenedAt} as at
     from memberships m join stores s on s.id = m.store_id join wallet_changes c on c.store_id = m.store_id
     where m.member_id = $1 and m.store_id = $3 and m.role = 'owner' and ${isYoung}
       and (${isWaiting} or ${isRecent} or c.undone_at > clock() - interval '${undoHours} hours')
       and ${happenedAt} > coalesce(m.wallets_seen_at, '-infinity')
     order by at desc limit $2`,
    [memberId, limit, storeId],
  )
  return rows.map((row) => ({ ...toChange(row), storeName: row.store_name, at: row.at }))
}

/** An undone change whose wallet open checkouts may still pay to. */
export type Cancellation = {
  readonly changeId: WalletChangeId
  readonly storeId: StoreId
  readonly address: string
  readonly since: Date
  readonly undoneBy: Actor
}

/** Takes one that is due, unless another process has it. */
export async function takeCancellation(tx: Transaction): Promise<Cancellation | null> {
  const [row] = await tx.query<Cancellation>(
    `select c.id as "changeId", c.store_id as "storeId", n.address, c.made_at as since, c.undone_by as "undoneBy"
     from wallet_changes c join wallets n on n.id = c.next_id
     where c.cancel_at <= clock() order by c.cancel_at limit 1 for update of c skip locked`,
  )
  return row ?? null
}

/** Says when to look again; the search ends `minutes` after the change was undone. */
export async function scheduleCancellation(
  tx: Transaction,
  changeId: WalletChangeId,
  againSeconds: number,
  minutes: number,
): Promise<void> {
  await tx.query(
    `update wallet_changes set cancel_at = case when clock() < undone_at + make_interval(mins => $3)
       then clock() + make_interval(secs => $2) end where id = $1`,
    [changeId, againSeconds, minutes],
  )
}

function toChange(row: ChangeRow): WalletChange {
  return {
    id: row.id,
    storeId: row.store_id,
    family: row.family,
    kind: row.kind,
    wallet: row.wallet,
    actor: row.actor,
    askedAt: row.asked_at,
    expiresAt: row.expires_at,
    isWaiting: row.is_waiting,
    made: row.made,
    madeAt: row.made_at,
    confirmedBy: row.confirmed_by,
    previous: row.previous,
    next: row.next,
    isUndoable: row.is_undoable,
    undoneAt: row.undone_at,
    undoneBy: row.undone_by,
  }
}
