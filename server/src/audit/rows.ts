import type { Database, Transaction } from '../database/db.ts'
import type { Network } from '../networks.ts'
import type { Arrived, Credited, Discrepancy } from './finding.ts'

/** A store's wallet and the first day that was not compared yet. */
export type DueWallet = {
  readonly wallet: string
  readonly isProven: boolean
  readonly createdAt: Date
  /** Such as 2026-11-16, in UTC. */
  readonly day: string
}

/** Money to a wallet that its store has retired without proving it is recorded for this long. */
const retiredDays = 9

/** SQL: the wallets of a network’s stores, $1 its family and $2 its mode. One that another cell owns is audited there. */
const ours = `select w.pay_to as wallet, min(w.created_at) as created_at, bool_or(w.proven_at is not null) as is_proven,
    case when bool_and(w.proven_at is null and w.retired_at is not null)
      then max(w.retired_at) + interval '${retiredDays} days' end as ended_at
  from wallets w join stores s on s.id = w.store_id and s.mode = $2
  where w.family = $1 and w.registration > 0 and not w.elsewhere and not w.unowned group by w.pay_to`

/** The wallets whose next day is over, the earliest day first. */
export async function listDue(
  db: Database,
  { family, mode, caip2 }: Network,
  today: string,
): Promise<DueWallet[]> {
  return await db.query<DueWallet>(
    `with ours as (${ours}), next as (
       select o.*, coalesce((select max(d.day) + 1 from audit_days d where d.network = $3 and d.wallet = o.wallet),
         (o.created_at at time zone 'UTC')::date) as day
       from ours o)
     select wallet, is_proven as "isProven", created_at as "createdAt", day::text as day from next
     where day < $4::date and (ended_at is null or day <= (ended_at at time zone 'UTC')::date)
     order by day, is_proven desc, wallet`,
    [family, mode, caip2, today],
  )
}

/** The wallets as they are compared for one day, whether that was done before or not. */
export async function listOn(db: Database, { family, mode }: Network, day: string): Promise<DueWallet[]> {
  return await db.query<DueWallet>(
    `with ours as (${ours})
     select wallet, is_proven as "isProven", created_at as "createdAt", $3::date::text as day from ours
     where (created_at at time zone 'UTC')::date <= $3::date and (ended_at is null or ended_at > $3::date)
     order by is_proven desc, wallet`,
    [family, mode, day],
  )
}

/** The wallets of a day that was compared, and for which the books say something else now. */
export async function listChanged(db: Database, network: string, day: string): Promise<string[]> {
  const rows = await db.query<{ wallet: string }>(
    `select distinct d.wallet from audit_days d
     left join (select k.pay_to, k.asset, count(*)::integer as credits, sum(k.amount) as credited from credits k
         where k.network = $1 and k.orphaned_at is null and ${onDay('k', '$2')} group by k.pay_to, k.asset) k
       on k.pay_to = d.wallet and k.asset = d.asset
     where d.network = $1 and d.day = $2::date
       and (d.credits <> coalesce(k.credits, 0) or d.credited <> coalesce(k.credited, 0))`,
    [network, day],
  )
  return rows.map(({ wallet }) => wallet)
}

/** The days of a network with open findings, the latest first. */
export async function listOpenDays(db: Database, network: string, limit: number): Promise<string[]> {
  const rows = await db.query<{ day: string }>(
    `select distinct day::text as day from audit_findings where network = $1 and resolved_at is null
     order by day desc limit $2`,
    [network, limit],
  )
  return rows.map(({ day }) => day)
}

/** SQL: whether the credit’s block is of this day in UTC. */
function onDay(credit: string, day: string): string {
  return `${credit}.block_time >= ${day}::date::timestamp at time zone 'UTC'
    and ${credit}.block_time < (${day}::date + 1)::timestamp at time zone 'UTC'`
}

/** SQL: the columns of `Credited`. */
export const credited = `k.network, k.transaction_hash as "transaction", k.asset, k.pay_to as "to", k.amount::text as amount,
  k.block_time as at, k.checkout_id as "checkoutId", k.store_id as "storeId"`

export type RawCredited = Omit<Credited, 'amount'> & { readonly amount: string }

export function toCredited(row: RawCredited): Credited {
  return { ...row, amount: BigInt(row.amount) }
}

/** What the books have for these wallets on a day. */
export async function listCredits(
  db: Database,
  network: string,
  wallets: readonly string[],
  day: string,
): Promise<Credited[]> {
  const rows = await db.query<RawCredited>(
    `select ${credited} from credits k
     where k.network = $1 and k.pay_to = any($2) and k.orphaned_at is null and ${onDay('k', '$3')}`,
    [network, wallets, day],
  )
  return rows.map(toCredited)
}

/** Those transfers that the books do not have, on any day. What retention deleted was in the books. */
export async function listUnrecorded(
  db: Database,
  network: string,
  arrived: readonly Arrived[],
): Promise<Arrived[]> {
  if (arrived.length === 0) return []
  const rows = await db.query<{ place: number }>(
    `select i.place from json_to_recordset($2) as i
       (place integer, transaction_hash text, asset text, payer text, pay_to text, amount numeric, position integer)
     where (select count(*) from credits k where k.transaction_hash = i.transaction_hash and k.network = $1
         and k.asset = i.asset and k.pay_to = i.pay_to and k.amount = i.amount and k.orphaned_at is null) <= i.position
       and not exists (select 1 from kept_credits x where x.key =
         credit_key($1, i.transaction_hash, i.asset, i.payer, i.pay_to, i.amount, i.position))
     order by i.place`,
    [
      network,
      JSON.stringify(
        arrived.map(({ transaction, asset, from, to, amount, position }, place) => ({
          ...{ place, transaction_hash: transaction, asset, payer: from, pay_to: to, position },
          amount: amount.toString(),
        })),
      ),
    ],
  )
  return rows.flatMap(({ place }) => arrived[place] ?? [])
}

/** What a wallet held at the end of the day before; absent if that day was not compared, or nobody could tell. */
export async function readBalances(
  db: Database,
  network: string,
  wallets: readonly string[],
  day: string,
): Promise<ReadonlyMap<string, bigint>> {
  const rows = await db.query<{ wallet: string; asset: string; balance: string }>(
    `select wallet, asset, balance::text as balance from audit_days
     where network = $1 and wallet = any($2) and day = $3::date - 1 and balance is not null`,
    [network, wallets, day],
  )
  return new Map(rows.map(({ wallet, asset, balance }) => [`${wallet} ${asset}`, BigInt(balance)]))
}

/** A day as it was compared, for one wallet and token. */
export type ComparedDay = {
  readonly wallet: string
  readonly asset: string
  readonly received: bigint
  readonly sent: bigint
  readonly balance: bigint | null
  readonly credits: number
  readonly credited: bigint
}

export async function writeDays(
  tx: Transaction,
  network: string,
  day: string,
  days: readonly ComparedDay[],
): Promise<void> {
  await tx.query(
    `insert into audit_days (network, wallet, asset, day, received, sent, balance, credits, credited, checked_at)
     select $1, i.wallet, i.asset, $2, i.received, i.sent, i.balance, i.credits, i.credited, clock()
     from json_to_recordset($3) as i (wallet text, asset text, received numeric, sent numeric, balance numeric,
       credits integer, credited numeric)
     on conflict (network, wallet, asset, day) do update set received = excluded.received, sent = excluded.sent,
       balance = coalesce(excluded.balance, audit_days.balance), credits = excluded.credits,
       credited = excluded.credited, checked_at = excluded.checked_at`,
    [network, day, toJson(days)],
  )
}

/** Amounts are text in JSON, whose numbers are exact only up to 2^53. */
function toJson(value: unknown): string {
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? each.toString() : each))
}

/**
 * Writes what was found, once for each store that owns the wallet. A finding that is known says nothing new. Returns how
 * many are new.
 */
export async function writeFindings(
  db: Database | Transaction,
  { caip2, mode }: { readonly caip2: string; readonly mode: string },
  day: string,
  differences: readonly Discrepancy[],
): Promise<number> {
  if (differences.length === 0) return 0
  const rows = await db.query<{ isNew: boolean }>(
    `insert into audit_findings as f
       (kind, network, wallet, asset, day, transaction_hash, position, amount, checkout_id, store_id, found_at)
     select i.kind, $1, i.wallet, i.asset, $3, i.transaction, i.position, i.amount, i."checkoutId",
       coalesce(i."storeId", o.store_id), clock()
     from json_to_recordset($4) as i (kind text, wallet text, asset text, transaction text, position integer,
       amount numeric, "checkoutId" text, "storeId" text)
     left join lateral (select store_id from payment_owners(i.wallet, ($3::date + 1)::timestamp at time zone 'UTC', $2)
       where i."storeId" is null) o on true
     on conflict (network, wallet, asset, day, kind, transaction_hash, position, checkout_id, store_id)
       do update set resolved_at = null, amount = excluded.amount
         where f.resolved_at is not null or f.amount <> excluded.amount
     returning true as "isNew"`,
    [caip2, mode, day, toJson(differences)],
  )
  return rows.length
}

/** Ends the findings about these wallets and this day that the last comparison did not make again. */
export async function resolveOthers(
  tx: Transaction,
  network: string,
  { wallets, day }: { readonly wallets: readonly string[]; readonly day: string },
  differences: readonly Discrepancy[],
): Promise<number> {
  const rows = await tx.query(
    `update audit_findings f set resolved_at = clock()
     where f.network = $1 and f.wallet = any($2) and f.day = $3 and f.resolved_at is null
       and not exists (select 1 from json_to_recordset($4) as i (kind text, wallet text, asset text, transaction text,
           position integer, "checkoutId" text)
         where i.kind = f.kind and i.wallet = f.wallet and i.asset = f.asset and i.transaction = f.transaction_hash
           and i.position = f.position and i."checkoutId" is not distinct from f.checkout_id)
     returning 1 as one`,
    [network, wallets, day, toJson(differences)],
  )
  return rows.length
}

/** How the audit of a network ended. */
export async function noteRun(
  db: Database,
  network: string,
  calls: number,
  trouble: string | null,
): Promise<void> {
  await db.query(
    `insert into audit_runs as r (network, ran_at, calls, trouble, trouble_since)
     values ($1, clock(), $2, $3, case when $3::text is not null then clock() end)
     on conflict (network) do update set ran_at = clock(), calls = $2, trouble = $3,
       trouble_since = case when $3::text is not null then coalesce(r.trouble_since, clock()) end`,
    [network, calls, trouble],
  )
}
