import { type Concerns, concernsMax } from '../../chains/evm/search.ts'
import type { Hex } from '../../chains/hex.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { mayMatchAt, modeOf } from '../credits/owners.ts'
import type { Concern, Seen, SeenPlain } from '../credits/rows.ts'
import { boundPattern, refundPattern } from '../nonces.ts'
import {
  type AuthorizationRow,
  type Authorized,
  authorizationOf,
  isUncredited,
  isUncreditedHere,
  toAuthorized,
} from '../rows.ts'
import type { Match } from '../transfers/match.ts'

type PerhapsDead = Authorized & {
  readonly spentBlockHash: Hex | null
  readonly spentReason: string | null
  /** When it was claimed, or first handed out to be signed. Its nonce was not used before that. */
  readonly claimedAt: Date
}
type PerhapsDeadRow = AuthorizationRow & {
  spent_block_hash: Hex | null
  spent_reason: string | null
  claimed_at: Date
}

/**
 * Unresolved authorizations that can't land any more by the time of this block, or whose nonce was spent by then. A
 * nonce that moved money which does not match the claim (another amount, say) does not settle the claim.
 */
export async function listPerhapsDead(
  db: Database,
  network: string,
  at: { time: Date; number: number },
  limit: number,
): Promise<PerhapsDead[]> {
  const rows = await db.query<PerhapsDeadRow>(
    `select a.* from authorizations a
     where a.network = $1 and a.state in ('claimed', 'sent') and a.refund_id is null and ${isUncreditedHere}
       and (a.valid_before <= $2 or a.spent_block_number <= $3)
     order by a.valid_before limit $4`,
    [network, Math.floor(at.time.getTime() / 1_000), at.number, limit],
  )
  return rows.map(toPerhapsDead)
}

/**
 * The same for refunds, signed or only handed out to be signed: we can't know whether a signature exists. They have
 * their own limit, so that no payment waits behind them.
 */
export async function listRefundsPerhapsDead(
  db: Database,
  network: string,
  at: { time: Date; number: number },
  limit: number,
): Promise<PerhapsDead[]> {
  const rows = await db.query<PerhapsDeadRow>(
    `select * from (
       select a.* from authorizations a where a.network = $1 and a.state = 'prepared'
         and (a.valid_before <= $2 or a.spent_block_number <= $3) and ${isUncreditedHere}
       union all
       select a.* from authorizations a where a.network = $1 and a.state in ('claimed', 'sent') and not a.is_credited
         and a.refund_id is not null and (a.valid_before <= $2 or a.spent_block_number <= $3) and ${isUncreditedHere}
     ) a order by a.valid_before limit $4`,
    [network, Math.floor(at.time.getTime() / 1_000), at.number, limit],
  )
  return rows.map(toPerhapsDead)
}

/**
 * The same for authorizations that we had given up, that landed anyway, and whose credit a reorganisation then removed.
 * Anybody who landed one may do so again, and until that is impossible its checkout waits. They are searched by
 * checkout, because few checkouts are PROCESSING.
 */
export async function listResolvedWithOrphanedCredit(
  db: Database,
  network: string,
  at: { time: Date; number: number },
  limit: number,
): Promise<PerhapsDead[]> {
  const rows = await db.query<PerhapsDeadRow>(
    `select a.* from checkouts c
     join authorizations a on a.checkout_id = c.id and a.network = $1 and a.state in ('rejected', 'dead')
     where c.status = 'PROCESSING' and ${isUncreditedHere}
       and exists (select 1 from credits k where k.network = a.network and k.asset = a.asset and k.payer = a.payer
         and k.nonce = a.nonce and k.checkout_id = c.id and k.disposition = 'exact' and k.orphaned_at is not null
         and k.reversed_at is null offset 0)
       and (a.valid_before <= $2 or a.spent_block_number <= $3)
     order by a.valid_before limit $4`,
    [network, Math.floor(at.time.getTime() / 1_000), at.number, limit],
  )
  return rows.map(toPerhapsDead)
}

function toPerhapsDead(row: PerhapsDeadRow): PerhapsDead {
  return {
    ...toAuthorized(row),
    spentBlockHash: row.spent_block_hash,
    spentReason: row.spent_reason,
    claimedAt: row.claimed_at,
  }
}

/** Tells the store for which checkout a payment sent by somebody else may be meant. */
export async function hintForeign(tx: Transaction, network: string, blockHash: Hex): Promise<void> {
  await tx.query(
    `insert into payment_hints (payment_id, checkout_id, disposition, created_at)
     select k.payment_id, a.checkout_id, 'unmatched', clock() from credits k
     cross join ${authorizationOf('k')}
     where k.network = $1 and k.block_hash = $2 and k.checkout_id is null and a.spent_reason = 'landed_by_another'
       and a.checkout_id is not null
     on conflict do nothing`,
    [network, blockHash],
  )
}

/** Records the block that spent a nonce on something else, or canceled it. */
export async function noteSpent(
  tx: Transaction,
  network: string,
  block: { number: number; hash: Hex },
  spent: readonly { asset: string; payer: string; nonce: string; reason: string }[],
): Promise<void> {
  await tx.query(
    `update authorizations a set spent_block_number = $3, spent_block_hash = $4, spent_reason = i.reason
     from json_to_recordset($2) as i (asset text, payer text, nonce text, reason text)
     where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.nonce = i.nonce`,
    [network, JSON.stringify(spent), block.number, block.hash],
  )
}

export async function forgetSpentAbove(tx: Transaction, network: string, number: number): Promise<void> {
  await tx.query(
    `update authorizations set spent_block_number = null, spent_block_hash = null, spent_reason = null
     where network = $1 and spent_block_number > $2`,
    [network, number],
  )
}

export async function forgetSpentIn(tx: Transaction, network: string, blockHash: Hex): Promise<void> {
  await tx.query(
    `update authorizations set spent_block_number = null, spent_block_hash = null, spent_reason = null
     where network = $1 and spent_block_hash = $2`,
    [network, blockHash],
  )
}

/**
 * The addresses that a chain is searched for. Recipients are all wallets of stores, and those named by claims and
 * reserved amounts. Authorizers are the payers of unresolved authorizations; after a restore also the stores' wallets,
 * because refunds that they signed may be unknown. Null if there are too many to name.
 */
export async function listConcerns(db: Database | Transaction, network: string): Promise<Concerns> {
  const unresolved = `select payer, pay_to from authorizations
      where network = $1 and state in ('claimed', 'sent') and not is_credited
    union all
    select payer, pay_to from authorizations where network = $1 and state = 'prepared'
    union all
    select a.payer, a.pay_to from checkouts c join authorizations a on a.checkout_id = c.id and a.network = $1
      and a.state in ('rejected', 'dead') where c.status = 'PROCESSING'`
  const ours = `select w.pay_to from wallets w join stores s on s.id = w.store_id and s.mode = $2
    where w.family = 'EVM'`
  const rows = await db.query<{ recipients: Hex[]; authorizers: Hex[] }>(
    `with unresolved as materialized (${unresolved}), ours as materialized (
       select distinct pay_to from (${ours}) w limit $3)
     select array(select pay_to from ours union select pay_to from unresolved
         union select pay_to from reserved_amounts where network = $1 and freed_at is null limit $3) as recipients,
       array(select payer from unresolved
         union select pay_to from ours where exists (select 1 from restores where network = $1)
         limit $3) as authorizers`,
    [network, modeOf(network), concernsMax + 1],
  )
  const named = (addresses: readonly Hex[] = []) =>
    addresses.length > concernsMax ? null : new Set<Hex>(addresses)
  return { recipients: named(rows[0]?.recipients), authorizers: named(rows[0]?.authorizers) }
}

/**
 * For this long after a store retires an unproven wallet, money to it is still recorded: as long as an amount stays
 * reserved.
 */
const retiredDays = 9
/**
 * How many unmatched transfers of a block are recorded for unproven wallets: per wallet, and in total. Anybody can
 * register somebody else's busy address, and each network has one follower for all stores.
 */
const unprovenMax = { perWallet: 20, perBlock: 200 }

/**
 * SQL: how stores of this mode relate to an address. `is_proven`: one has proven it. `is_registered`: one has
 * registered it and has not retired it long ago. Both are null if no store knows it.
 */
const oursAt = (
  address: string,
  mode: string,
) => `lateral (select bool_or(w.proven_at is not null) as is_proven,
    bool_or(w.retired_at is null or w.retired_at > clock() - interval '${retiredDays} days') as is_registered
  from wallets w join stores s on s.id = w.store_id and s.mode = ${mode} where w.pay_to = ${address} offset 0)`

/**
 * SQL: of the transfers `f`, each with its place in the block, those that we know (`is_known`), those to proven
 * wallets, and as many others as the limits allow. `unrecorded` is the number left out. While a restore is reconciled
 * there is no limit, because a payment whose claim was lost looks like an unmatched one. $1 is the network.
 */
const withinBudget = (
  found: string,
) => `select *, count(*) filter (where not is_within) over () as unrecorded from (
    select *, is_free or (is_next and count(*) filter (where is_next) over (order by place) <= ${unprovenMax.perBlock}) as is_within
    from (
      select *, is_known or coalesce(is_proven, false)
          or exists (select 1 from restores r where r.network = $1 and r.finished_at is null) as is_free,
        not is_known and not coalesce(is_proven, false) and is_registered
          and row_number() over (partition by pay_to, is_known order by place) <= ${unprovenMax.perWallet} as is_next
      from (${found}) f where is_known or is_proven or is_registered) g) h`

/** Block times are whole seconds, so a block may be this much later than its time. */
export const blockSecond = "interval '1 second'"

/** The transfers that concern us, and how many transfers to unproven wallets exceed the limits. */
type Found<One> = { readonly found: One[]; readonly unrecorded: number }

/**
 * The transfers by authorization in a block that concern us, in one query per block. A transfer from a store's wallet
 * with a refund's nonce counts even if we know of no refund: a restored database may have forgotten it.
 */
export async function findConcerns(
  tx: Transaction,
  network: string,
  blockTime: Date,
  seen: readonly Seen[],
): Promise<Found<Concern>> {
  if (seen.length === 0) return { found: [], unrecorded: 0 }
  const rows = await tx.query<{
    place: number
    is_claimed: boolean
    checkout_id: string | null
    store_id: string | null
    is_match: boolean | null
    is_foreign: boolean | null
    is_within: boolean
    unrecorded: string
  }>(
    `${withinBudget(`select i.place, i.pay_to, o.is_proven, o.is_registered,
       a.nonce is not null or (i.nonce like $5 and exists (select 1 from wallets w
         join stores s on s.id = w.store_id and s.mode = $3 where w.pay_to = i.payer)) as is_known,
       a.nonce is not null as is_claimed, a.checkout_id, a.store_id,
       a.pay_to = i.pay_to and a.amount = i.amount as is_match,
       a.sends = 0 and a.refund_id is null and a.nonce not like $4 and (
         exists (select 1 from wallets w where w.store_id = a.store_id and w.pay_to = a.pay_to and w.shared_elsewhere)
         or $6::timestamptz + ${blockSecond} <= a.claimed_at or exists (select 1 from credits o where o.network = $1 and o.asset = a.asset
           and o.payer = a.payer and o.nonce = a.nonce and o.first_seen_block_time + ${blockSecond} <= a.claimed_at offset 0)) as is_foreign
     from json_to_recordset($2) as i (place integer, asset text, payer text, nonce text, pay_to text, amount numeric)
     left join ${authorizationOf('i', '$1')} on true
     cross join ${oursAt('i.pay_to', '$3')} o`)} order by place`,
    [
      network,
      JSON.stringify(
        seen.map(({ asset, payer, nonce, to, value }, place) => ({
          place,
          asset,
          payer,
          nonce,
          pay_to: to,
          amount: value.toString(),
        })),
      ),
      modeOf(network),
      boundPattern,
      refundPattern,
      blockTime,
    ],
  )
  return withinOf(rows, (row) => {
    const found = seen[row.place]
    if (!found) return []
    return {
      seen: found,
      claim: row.is_claimed
        ? {
            checkoutId: row.checkout_id,
            storeId: row.store_id,
            isMatch: row.is_match === true,
            isForeign: row.is_foreign === true,
          }
        : null,
    }
  })
}

function withinOf<Row extends { is_within: boolean; unrecorded: string }, One>(
  rows: readonly Row[],
  read: (row: Row) => One | never[],
): Found<One> {
  const found = rows.filter(({ is_within }) => is_within).flatMap(read) as One[]
  return { found, unrecorded: Number.parseInt(rows[0]?.unrecorded ?? '0', 10) }
}

/** The plain transfers in a block that concern us, in one query per block. */
export async function findMatches(
  tx: Transaction,
  network: string,
  blockNumber: number,
  seen: readonly SeenPlain[],
): Promise<Found<Match>> {
  if (seen.length === 0) return { found: [], unrecorded: 0 }
  const rows = await tx.query<{
    place: number
    checkout_id: string | null
    store_id: string | null
    is_within: boolean
    unrecorded: string
  }>(
    `${withinBudget(`select i.place, i.pay_to, o.is_proven, o.is_registered, c.id is not null as is_known,
       c.id as checkout_id, c.store_id
     from json_to_recordset($2) as i (place integer, asset text, pay_to text, amount numeric)
     left join reserved_amounts r on r.network = $1 and r.asset = i.asset and r.pay_to = i.pay_to
       and r.amount = i.amount and r.freed_at is null and r.after_block < $3
     left join checkouts c on c.id = r.checkout_id and ${mayMatchAt('c.store_id', 'r.pay_to', '$4')}
     cross join ${oursAt('i.pay_to', '$4')} o`)} order by place`,
    [
      network,
      JSON.stringify(
        seen.map(({ asset, to, value }, place) => ({ place, asset, pay_to: to, amount: value.toString() })),
      ),
      blockNumber,
      modeOf(network),
    ],
  )
  return withinOf(rows, ({ place, checkout_id, store_id }) => {
    const found = seen[place]
    return found ? { seen: found, checkoutId: checkout_id, storeId: store_id } : []
  })
}

/** What is known of a payer when its next payments are chosen. */
export type PayerState = {
  /** The amount in flight. The balance must cover it in addition to anything sent next. */
  readonly unsettled: bigint
  /** How many payments are in flight. */
  readonly unsettledCount: number
  /** How many payments it has settled since its last one that was mined without effect, counted up to a limit. */
  readonly settledCount: number
}

/** The states of payers, by asset and payer. */
export async function readPayers(
  db: Database,
  network: string,
  keys: readonly { readonly asset: string; readonly payer: string }[],
  settledMax: number,
): Promise<Map<string, PayerState>> {
  const rows = await db.query<{
    asset: string
    payer: string
    units: string
    unsettled: number
    settled: number
  }>(
    `select i.asset, i.payer, coalesce(s.units, 0) as units, s.unsettled, t.settled
     from (select distinct asset, payer from unnest($2::text[], $3::text[]) as k (asset, payer)) i
     cross join lateral (
       select sum(a.amount) as units, count(*)::integer as unsettled from authorizations a
       where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.state = 'sent' and ${isUncredited}) s
     cross join lateral (
       select count(*)::integer as settled from (select 1 from authorizations a
         where a.network = $1 and a.asset = i.asset and a.payer = i.payer and a.is_credited
           and a.claimed_at > coalesce((select max(f.failed_at) from authorizations f
             where f.network = $1 and f.payer = i.payer and f.failed_at is not null), '-infinity')
         limit $4) recent) t`,
    [network, keys.map(({ asset }) => asset), keys.map(({ payer }) => payer), settledMax],
  )
  return new Map(
    rows.map((row) => [
      `${row.asset} ${row.payer}`,
      { unsettled: BigInt(row.units), unsettledCount: row.unsettled, settledCount: row.settled },
    ]),
  )
}
